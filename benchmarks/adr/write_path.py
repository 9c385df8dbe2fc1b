"""Measure the ways to write Parquet files with Spark (docs/adr/2026-11-21-spark-write-path.md).

    nice python benchmarks/adr/write_path.py [--rounds 5] [--repetitions 5]

Plain Parquet and Spark only. Prints the tables as Markdown and writes every raw figure to
`benchmarks/results/adr-write-path.json`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
WRITERS = 4
ROWS_PER_WRITE = 250_000
TIMED_ROWS = 3_000_000
NO_SUCCESS = ("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")


def rows_in(folder: Path) -> int:
    return sum(
        pq.read_metadata(path).num_rows for path in folder.rglob("*.parquet") if "_temporary" not in str(path)
    )


def concurrent_jobs(spark: Any, scratch: Path, rounds: int) -> list[dict[str, Any]]:
    """Four jobs of one driver append at once: into one directory, and each into its own."""
    out = []
    for shared in (True, False):
        for number in range(rounds):
            table = scratch / f"concurrent-{shared}-{number}"

            def append(index: int, table: Path = table, shared: bool = shared) -> str:
                target = table if shared else table / str(uuid.uuid4())
                try:
                    frame = spark.range(index * ROWS_PER_WRITE, (index + 1) * ROWS_PER_WRITE, 1, 4)
                    frame.selectExpr("id", "id % 97 as k").write.mode("append").option(*NO_SUCCESS).parquet(
                        str(target)
                    )
                except Exception as error:
                    return type(error).__name__
                return "done"

            with ThreadPoolExecutor(WRITERS) as pool:
                ends = list(pool.map(append, range(WRITERS)))
            out.append(
                {
                    "shared_directory": shared, "round": number,
                    "aborted": sum(end != "done" for end in ends),
                    "rows_written": WRITERS * ROWS_PER_WRITE, "rows_found": rows_in(table),
                    "rows_of_jobs_that_reported_success": ends.count("done") * ROWS_PER_WRITE,
                    "leftovers": sum(1 for p in table.rglob("*") if "_temporary" in str(p) and p.is_file()),
                }
            )  # fmt: skip
            shutil.rmtree(table)
    return out


SLOW_JOB = """
import sys
from spark_jobs.session import get_session
spark = get_session(master="local[2]", conf={"spark.log.level": "OFF"})
# Two tasks end at once, two take long: the kill comes between.
frame = spark.range(0, 4_000_000, 1, 4).selectExpr(
    "id", "case when id >= 2000000 and id % 1000 = 0 then reflect('java.lang.Thread', 'sleep', 20L) end as s")
print("READY", flush=True)
frame.write.mode("append").parquet(sys.argv[1])
"""


def killed_job(scratch: Path, *, shared: bool) -> dict[str, Any]:
    """Kill -9 a driver in the middle of its write; look at what is there then."""
    table = scratch / f"killed-{shared}"
    table.mkdir()
    pq.write_table(pa.table({"id": pa.array(range(1000), pa.int64())}), table / "committed.parquet")
    target = table if shared else table / str(uuid.uuid4())
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_JOB, str(target)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not any(
            p.stat().st_size > 0 for p in list(target.rglob("*.parquet")) if "_temporary" in str(p)
        ):
            time.sleep(0.2)
        time.sleep(1.5)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    left = [
        p.relative_to(table).as_posix()
        for p in table.rglob("*")
        if p.is_file() and p.name != "committed.parquet"
    ]
    return {
        "shared_directory": shared,
        "files_left": len(left),
        "bytes_left": sum((table / p).stat().st_size for p in left),
        "example": sorted(left)[-1] if left else "-",
        "all_below_temporary": all("_temporary" in p for p in left),
        "table": str(table),
    }


def read_after_kill(spark: Any, kills: list[dict[str, Any]]) -> None:
    """What a reader of the directory, and a writer of the next job, meet after the kill."""
    for kill in kills:
        table = Path(kill.pop("table"))
        kill["rows_a_directory_reader_sees"] = spark.read.parquet(str(table)).count()
        target = table if kill["shared_directory"] else table / str(uuid.uuid4())
        spark.range(1000).write.mode("append").option(*NO_SUCCESS).parquet(str(target))
        left = [p for p in table.rglob("*") if p.is_file() and "_temporary" in str(p)]
        kill["leftovers_after_the_next_job"] = len(left)


def partitioned(spark: Any, scratch: Path) -> list[dict[str, Any]]:
    """What partitionBy makes of awkward values."""
    from pyspark.sql import functions as fn

    values = [
        "plain", "a b", "x/y", "50%", "k=v", "a:b", "ü日本", "it's", 'q"q', "#?", "[1]{2}*",
        "back\\slash", "tab\there",
        "", None, ".dot", "..", "trailing ",
    ]  # fmt: skip
    root = scratch / "partitioned"
    frame = spark.createDataFrame(list(enumerate(values)), "id int, c string")
    frame.repartition(1).write.partitionBy("c").option(*NO_SUCCESS).parquet(str(root))
    where = {}
    in_file = set()
    for path in root.rglob("*.parquet"):
        read = pq.ParquetFile(path)
        in_file |= set(read.schema_arrow.names)
        for row in read.read(["id"]).column("id").to_pylist():
            where[row] = path.parent.name
    out = [{"value": value, "directory": where.get(index)} for index, value in enumerate(values)]
    literal = spark.createDataFrame([(1, "__HIVE_DEFAULT_PARTITION__")], "id int, c string")
    for label, rows in (
        ("alone", literal),
        ("beside a null", literal.union(spark.createDataFrame([(2, None)], literal.schema))),
    ):
        target = scratch / f"literal-{label}"
        try:
            rows.coalesce(1).write.partitionBy("c").parquet(str(target))
            read = spark.read.parquet(str(target)).select("c").first()[0]
            found = f"{next(target.glob('c=*')).name}, read as {read}"
        except Exception as error:
            found = f"{type(error).__name__}: the job fails"
        out.append({"value": f"the text __HIVE_DEFAULT_PARTITION__ {label}", "directory": found})
    moment = "timestamp'2013-01-31 23:30:00.5 America/New_York'"
    for zone in ("UTC", "America/New_York"):
        target = scratch / f"zone-{zone.replace('/', '-')}"
        spark.conf.set("spark.sql.session.timeZone", zone)
        spark.range(1).withColumn("t", fn.expr(moment)).write.partitionBy("t").parquet(str(target))
        out.append({"value": f"{moment} in a session of {zone}", "directory": next(target.glob("t=*")).name})
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    out.append({"value": "columns in the files", "directory": ", ".join(sorted(in_file))})
    return out


def pyarrow_writer(folder: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = None
        rows = 0
        for batch in batches:
            if writer is None:
                writer = pq.ParquetWriter(
                    f"{folder}/{uuid.uuid4()}.parquet", batch.schema, compression="snappy"
                )
            writer.write_batch(batch)
            rows += batch.num_rows
        if writer is not None:
            writer.close()
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    return write


def cpu_seconds() -> float:
    """Of this process, the JVM and Spark's Python workers."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def timings(spark: Any, scratch: Path, repetitions: int) -> dict[str, list[dict[str, float]]]:
    """The same rows written in four ways, in random order."""
    source = scratch / "source"
    spark.range(0, TIMED_ROWS, 1, 4).selectExpr(
        "id", "cast(id % 7 as int) as a", "rand(1) as x", "cast(rand(2) * 1000 as decimal(12,2)) as d",
        "concat('customer ', id % 5000) as s", "concat('comment ', sha1(cast(id as string))) as t",
        "date_add(date'2013-01-01', cast(id % 365 as int)) as day", "timestamp_micros(id * 1000000) as ts",
    ).write.parquet(str(source))  # fmt: skip

    def target() -> Path:
        return scratch / f"out-{uuid.uuid4()}"

    def plain(folder: Path) -> None:
        spark.read.parquet(str(source)).write.parquet(str(folder))

    def prefix_and_footers(folder: Path) -> None:
        prefix = folder / str(uuid.uuid4())
        spark.read.parquet(str(source)).write.option(*NO_SUCCESS).parquet(str(prefix))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda p: pq.read_metadata(p).row_group(0).to_dict(), prefix.glob("*.parquet")))

    def arrow(folder: Path) -> None:
        folder.mkdir()
        spark.read.parquet(str(source)).mapInArrow(pyarrow_writer(str(folder)), "rows long").collect()

    def checked(folder: Path) -> None:
        from pyspark.sql import functions as fn

        frame = spark.read.parquet(str(source))
        row = fn.to_json(fn.struct(*frame.columns))
        guarded = fn.when(fn.expr("NOT coalesce(id >= 0, true)"), fn.raise_error(row).cast("long")).otherwise(
            fn.col("id")
        )
        frame.withColumn("id", guarded).write.parquet(str(folder))

    ways = {
        "df.write.parquet": plain,
        "own prefix + footers": prefix_and_footers,
        "df.write with a CHECK": checked,
        "mapInArrow + pyarrow": arrow,
    }
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for repetition in range(repetitions + 1):
        order = list(ways.items())
        random.Random(repetition).shuffle(order)
        for name, way in order:
            folder = target()
            start, cpu = time.perf_counter(), cpu_seconds()
            way(folder)
            if repetition:  # the first one warms up
                wall = time.perf_counter() - start
                measured[name].append({"wall_seconds": wall, "cpu_seconds": cpu_seconds() - cpu})
            shutil.rmtree(folder)
    return measured


def report(results: dict[str, Any]) -> str:
    lines = [f"\n### {WRITERS} jobs at once, {ROWS_PER_WRITE:,} rows each", ""]
    lines += ["| output | round | rows found of written | jobs aborted | lost without an error | leftovers |"]
    lines += ["|---|---|---|---|---|---|"]
    for row in results["concurrent"]:
        lost = row["rows_of_jobs_that_reported_success"] - row["rows_found"]
        lines.append(
            f"| {'one directory' if row['shared_directory'] else 'a prefix each'} | {row['round']} "
            f"| {row['rows_found']:,} of {row['rows_written']:,} | {row['aborted']} | {max(lost, 0):,} "
            f"| {row['leftovers']} |"
        )
    lines += ["\n### kill -9 in the middle of a write (1,000 committed rows)", ""]
    lines += [
        "| output | files left | all below `_temporary` | rows a directory reader sees | after the next job |"
    ]
    lines += ["|---|---|---|---|---|"]
    for row in results["killed"]:
        lines.append(
            f"| {'one directory' if row['shared_directory'] else 'a prefix each'} | {row['files_left']} "
            f"| {row['all_below_temporary']} | {row['rows_a_directory_reader_sees']:,} "
            f"| {row['leftovers_after_the_next_job']} |"
        )
    lines += ["\n### partitionBy", "", "| value | directory |", "|---|---|"]
    lines += [f"| `{row['value']!r}` | `{row['directory']}` |" for row in results["partitioned"]]
    lines += [
        f"\n### {TIMED_ROWS:,} rows, 8 columns",
        "",
        "| way | median wall s | minimum | median cpu s | ratio of minimal wall | ratio of median cpu |",
        "|---|---|---|---|---|---|",
    ]
    base = results["timings"]["df.write.parquet"]
    base_wall = min(run["wall_seconds"] for run in base)
    base_cpu = statistics.median(run["cpu_seconds"] for run in base)
    for name, runs in results["timings"].items():
        walls = [run["wall_seconds"] for run in runs]
        cpu = statistics.median(run["cpu_seconds"] for run in runs)
        lines.append(
            f"| {name} | {statistics.median(walls):.2f} | {min(walls):.2f} | {cpu:.2f} "
            f"| {min(walls) / base_wall:.2f} | {cpu / base_cpu:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "adr-write-path.json")
    arguments = parser.parse_args()
    from spark_jobs.session import get_session

    started = time.perf_counter()
    scratch = Path(tempfile.mkdtemp(prefix="deltaward-write-path-"))
    try:
        killed = [killed_job(scratch, shared=shared) for shared in (True, False)]
        spark = get_session(master="local[2]", conf={"spark.driver.memory": "2g", "spark.log.level": "OFF"})
        read_after_kill(spark, killed)
        results = {
            "concurrent": concurrent_jobs(spark, scratch, arguments.rounds),
            "killed": killed,
            "partitioned": partitioned(spark, scratch),
            "timings": timings(spark, scratch, arguments.repetitions),
        }
        spark.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    document = {
        "measured_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "duration_seconds": round(time.perf_counter() - started, 1),
        "machine": {"cpus": os.cpu_count(), "system": platform.system(), "shared": True},
        **results,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print(report(results))


if __name__ == "__main__":
    main()
