"""Measure the ways to scan a set of Parquet files with Spark (docs/adr/2026-11-21-spark-read-path.md).

    nice python benchmarks/adr/read_path.py [--counts 1000,20000,100000] [--engines classic,connect]

Each engine runs in a process of its own. Prints the tables as Markdown and writes every raw figure to
`benchmarks/results/adr-read-path.json`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results"
ROWS_PER_FILE = 4
TEMPLATES = 500
PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def make_directory(folder: Path, count: int) -> list[str]:
    """`count` files of four rows; one in eleven besides is dead (in the directory, not in the table)."""
    folder.mkdir(parents=True)
    templates = []
    for number in range(TEMPLATES):
        values = pa.array([number * ROWS_PER_FILE + row for row in range(ROWS_PER_FILE)], pa.int64())
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": values, "x": pa.array([1] * ROWS_PER_FILE, pa.int32())}), sink)
        templates.append(sink.getvalue().to_pybytes())
    live = []
    for number in range(count + count // 10):
        name = f"part-{number:05d}-{number * 2654435761 % 2**32:08x}-0000-0000-0000-000000000000.c000.parquet"
        (folder / name).write_bytes(templates[number % TEMPLATES])
        if number % 11:
            live.append(name)
    return live[:count]


def expected_sum(names: list[str]) -> int:
    total = 0
    for name in names:
        number = int(name.split("-")[1]) % TEMPLATES
        total += sum(number * ROWS_PER_FILE + row for row in range(ROWS_PER_FILE))
    return total


def strategies(spark: Any, folder: Path, schema: Any) -> dict[str, Any]:
    from pyspark.sql import functions as fn

    def explicit(conf: dict[str, str]) -> Any:
        def build(names: list[str]) -> Any:
            for key in (PARALLELISM, THRESHOLD):
                spark.conf.unset(key)
            for key, value in conf.items():
                spark.conf.set(key, value)
            return spark.read.schema(schema).parquet(*[str(folder / n) for n in names])

        return build

    def literal(names: list[str]) -> Any:
        for key in (PARALLELISM, THRESHOLD):
            spark.conf.unset(key)
        text = "_metadata.file_name IN (" + ",".join(f"'{n}'" for n in names) + ")"
        return spark.read.schema(schema).parquet(str(folder)).where(fn.expr(text))

    return {
        "explicit, default": explicit({}),
        "explicit, parallelism=16": explicit({PARALLELISM: "16"}),
        "explicit, on the driver": explicit({THRESHOLD: "1000000"}),
        "directory, IN as text": literal,
    }


def time_file_lists(
    spark: Any, counts: list[int], scratch: Path, budget: dict[str, int]
) -> list[dict[str, Any]]:
    from pyspark.sql import functions as fn
    from pyspark.sql.types import IntegerType, LongType, StructField, StructType

    schema = StructType([StructField("id", LongType()), StructField("x", IntegerType())])
    rows = []
    for count in counts:
        folder = scratch / f"files-{count}"
        names = make_directory(folder, count)
        spark.read.schema(schema).parquet(str(folder)).limit(1).collect()
        repetitions = budget["large" if count >= 100_000 else "small"]
        for repetition in range(repetitions):
            ways = list(strategies(spark, folder, schema).items())
            random.Random(repetition).shuffle(ways)
            for name, build in ways:
                if name == "explicit, default" and repetition > 0 and count >= 20_000:
                    continue
                # A new order and a new literal: the server must not answer from a cached plan.
                chosen = random.Random(f"{name}{repetition}").sample(names, len(names))
                start = time.perf_counter()
                frame = build(chosen).withColumn("tag", fn.lit(f"{name}{repetition}"))
                frame.schema  # noqa: B018 - the property makes the server analyse
                analysed = time.perf_counter()
                frame.select("id").limit(1).collect()
                first_row = time.perf_counter()
                scan_seconds = right = None
                if count <= 20_000 or (repetition == 0 and name != "explicit, default"):
                    start_scan = time.perf_counter()
                    found = frame.agg(fn.count("id"), fn.sum("id")).collect()[0]
                    scan_seconds = time.perf_counter() - start_scan
                    right = tuple(found) == (count * ROWS_PER_FILE, expected_sum(names))
                rows.append(
                    {
                        "files": count, "strategy": name, "repetition": repetition,
                        "analysis_seconds": analysed - start, "first_row_seconds": first_row - start,
                        "scan_seconds": scan_seconds, "right": right,
                    }
                )  # fmt: skip
                print(f"  {count} {name}: {rows[-1]}", file=sys.stderr, flush=True)
        shutil.rmtree(folder)
    return rows


def time_partition_values(spark: Any, scratch: Path) -> list[dict[str, Any]]:
    """A narrow aggregate by a partition column whose values come from the log."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    data = StructType([StructField("id", LongType()), StructField("x", LongType())])
    hive = StructType([*data.fields, StructField("p", StringType())])
    out = []
    for files, per_file in ((8, 500_000), (64, 62_500), (256, 15_625)):
        root = scratch / f"partitions-{files}"
        values: dict[str, str] = {}
        table = pa.table(
            {"id": pa.array(range(per_file), pa.int64()), "x": pa.array([1] * per_file, pa.int64())}
        )
        for number in range(files):
            folder = root / f"p=v{number:04d}"
            folder.mkdir(parents=True)
            pq.write_table(table, folder / f"f-{number:05d}.parquet")
            values[f"f-{number:05d}.parquet"] = f"v{number:04d}"
        paths = [str(root / f"p={v}" / n) for n, v in values.items()]
        # None of them may be measured with Spark's own discovery doing the work of another.
        plain_copy = scratch / f"plain-{files}"
        plain_copy.mkdir()
        for number in range(files):
            os.link(
                root / f"p=v{number:04d}" / f"f-{number:05d}.parquet", plain_copy / f"f-{number:05d}.parquet"
            )
        plain = [str(plain_copy / n) for n in values]
        mapping = spark.createDataFrame(list(values.items()), "fn string, p string")

        def from_map(plain: list[str] = plain, values: dict[str, str] = values) -> Any:
            pairs = ",".join(f"'{k}','{v}'" for k, v in values.items())
            return (
                spark.read.schema(data)
                .parquet(*plain)
                .withColumn("p", fn.expr(f"map({pairs})[_metadata.file_name]"))
            )

        def from_join(plain: list[str] = plain, mapping: Any = mapping) -> Any:
            frame = spark.read.schema(data).parquet(*plain).withColumn("fn", fn.col("_metadata.file_name"))
            return frame.join(fn.broadcast(mapping), "fn", "left")

        def from_hive(paths: list[str] = paths, root: Path = root) -> Any:
            return spark.read.schema(hive).option("basePath", str(root)).parquet(*paths)

        def without(plain: list[str] = plain) -> Any:
            return spark.read.schema(data).parquet(*plain).withColumn("p", fn.lit("v0000"))

        ways = {
            "no partition column": without,
            "hive fast path": from_hive,
            "map literal": from_map,
            "join": from_join,
        }
        for repetition in range(4):
            for name, build in ways.items():
                frame = build()
                start = time.perf_counter()
                groups = frame.groupBy("p").agg(fn.sum("x").alias("s")).collect()
                seconds = time.perf_counter() - start
                right = len(groups) == (1 if name == "no partition column" else files) and all(
                    g["p"] is not None for g in groups
                )
                if repetition:  # the first one warms up
                    out.append({"files": files, "way": name, "seconds": seconds, "right": right})
    return out


def correctness_traps(spark: Any, scratch: Path) -> list[dict[str, Any]]:
    """What Spark answers for names that a table may hold."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("id", LongType())])
    table = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    names = {
        "space": "a b.parquet", "percent": "a%20b.parquet", "hash": "a#b.parquet", "unicode": "ü日本.parquet",
        "plus and ampersand": "a+b&c=d;e'f.parquet", "brackets": "a[1].parquet", "braces": "a{1,2}.parquet",
        "question mark": "a?.parquet", "colon": "a:b.parquet", "underscore first": "_a.parquet",
        "dot first": ".a.parquet", "underscore directory": "_x=1/a.parquet",
        "colon directory": "t=10:00/a.parquet", "quote": 'a"b.parquet', "backslash": "a\\b.parquet",
    }  # fmt: skip
    out = []

    def rows(build: Any) -> str:
        try:
            frame = build()
            if not frame.columns:
                return "no column"
            found = frame.agg(fn.count("*")).collect()[0][0]
            return str(found)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0][:70]}"

    for number, (label, name) in enumerate(names.items()):
        root = scratch / f"trap-{number}"
        path = root / name
        path.parent.mkdir(parents=True)
        pq.write_table(table, path)
        escaped = "".join("\\" + c if c in "[]{}*?\\" else c for c in str(path))

        def metadata_name(escaped: str = escaped) -> str:
            found = (
                spark.read.schema(schema).parquet(escaped).select("_metadata.file_name").limit(1).collect()
            )
            return found[0][0] if found else "-"

        try:
            reported = metadata_name()
        except Exception as error:
            reported = type(error).__name__
        out.append(
            {
                "name": label, "path": name,
                "as it is": rows(lambda path=path: spark.read.schema(schema).parquet(str(path))),
                "globs escaped": rows(lambda escaped=escaped: spark.read.schema(schema).parquet(escaped)),
                "directory": rows(lambda root=root: spark.read.schema(schema).parquet(str(root))),
                "file_name": reported,
            }
        )  # fmt: skip
    root = scratch / "trap-path"
    root.mkdir()
    pq.write_table(table, root / "f.parquet")
    for prefix in ("", "file:", "file://"):
        shown = (
            spark.read.schema(schema).parquet(prefix + str(root / "f.parquet")).select("_metadata.file_path")
        )
        out.append(
            {
                "name": f"file_path of {prefix or 'a plain path'}",
                "file_name": shown.collect()[0][0].replace(str(root), ""),
            }
        )
    for number in range(3):
        folder = root / f"p=00{number}"
        folder.mkdir()
        pq.write_table(table, folder / "g.parquet")
    files = [str(root / f"p=00{n}" / "g.parquet") for n in range(3)]
    with_p = "id bigint, p string"
    for label, options in (("without basePath", {}), ("with basePath", {"basePath": str(root)})):
        try:
            found = [
                r[0]
                for r in spark.read.schema(with_p)
                .options(**options)
                .parquet(*files)
                .select("p")
                .distinct()
                .sort("p")
                .collect()
            ]
        except Exception as error:
            found = [type(error).__name__]
        out.append({"name": f"partition column {label}", "file_name": str(found)})
    return out


def worker(engine: str, counts: list[int], remote: str | None, out: Path) -> None:
    from spark_jobs.session import get_session

    scratch = Path(tempfile.mkdtemp(prefix="deltaward-read-path-"))
    conf = {} if remote else {"spark.driver.memory": "3g", "spark.log.level": "ERROR"}
    spark = get_session(remote, master=None if remote else "local[2]", conf=conf)
    try:
        result = {
            "lists": time_file_lists(spark, counts, scratch, {"small": 3, "large": 2}),
            "partition_values": time_partition_values(spark, scratch),
            "traps": correctness_traps(spark, scratch),
        }
        out.write_text(json.dumps(result))
    finally:
        spark.stop()
        shutil.rmtree(scratch, ignore_errors=True)


def report(results: dict[str, Any]) -> str:
    lines = []
    for engine, result in results.items():
        lines += [f"\n### {engine}: file lists (minimum of the repetitions, seconds)", ""]
        lines += [
            "| files | strategy | analysed | first row | whole scan | rows right |",
            "|---|---|---|---|---|---|",
        ]
        keys = sorted({(r["files"], r["strategy"]) for r in result["lists"]})
        for files, strategy in keys:
            group = [r for r in result["lists"] if (r["files"], r["strategy"]) == (files, strategy)]
            scans = [r["scan_seconds"] for r in group if r["scan_seconds"] is not None]
            right = all(r["right"] for r in group if r["right"] is not None) if scans else "-"
            lines.append(
                f"| {files:,} | {strategy} | {min(r['analysis_seconds'] for r in group):.2f} "
                f"| {min(r['first_row_seconds'] for r in group):.2f} "
                f"| {f'{min(scans):.2f}' if scans else '-'} | {right} |"
            )
        lines += [f"\n### {engine}: partition values (minimum seconds; ratio to no partition column)", ""]
        lines += ["| files | way | seconds | ratio | right |", "|---|---|---|---|---|"]
        for files in sorted({r["files"] for r in result["partition_values"]}):
            base = None
            for way in ("no partition column", "hive fast path", "map literal", "join"):
                group = [r for r in result["partition_values"] if (r["files"], r["way"]) == (files, way)]
                best = min(r["seconds"] for r in group)
                base = base or best
                lines.append(
                    f"| {files} | {way} | {best:.2f} | {best / base:.2f} | {all(r['right'] for r in group)} |"
                )
        lines += [f"\n### {engine}: traps (3 rows are right)", ""]
        lines += [
            "| case | as it is | globs escaped | directory | `_metadata` says |",
            "|---|---|---|---|---|",
        ]
        for row in result["traps"]:
            lines.append(
                f"| {row['name']} | {row.get('as it is', '')} | {row.get('globs escaped', '')} "
                f"| {row.get('directory', '')} | `{row['file_name']}` |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", default="1000,20000,100000")
    parser.add_argument("--engines", default="classic,connect")
    parser.add_argument("--output", type=Path, default=RESULTS / "adr-read-path.json")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--remote", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    counts = [int(c) for c in arguments.counts.split(",")]
    if arguments.worker:
        worker(arguments.worker, counts, arguments.remote, arguments.output)
        return
    results: dict[str, Any] = {}
    started = time.perf_counter()
    for engine in arguments.engines.split(","):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "result.json"
            command = [
                sys.executable,
                __file__,
                "--worker",
                engine,
                "--counts",
                arguments.counts,
                "--output",
                str(out),
            ]
            if engine == "connect":
                from spark_jobs.connect_server import ConnectServer

                server = ConnectServer.start(
                    master="local[2]", driver_memory="3g", directory=folder, conf={"spark.log.level": "ERROR"}
                )
                with server:
                    subprocess.run([*command, "--remote", server.url], check=True)
            else:
                subprocess.run(command, check=True)
            results[engine] = json.loads(out.read_text())
    document = {
        "measured_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "duration_seconds": round(time.perf_counter() - started, 1),
        "machine": {"cpus": os.cpu_count(), "system": platform.system(), "shared": True},
        "rows_per_file": ROWS_PER_FILE,
        "engines": results,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    print(report(results))


if __name__ == "__main__":
    main()
