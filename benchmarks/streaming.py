"""Latency and throughput of streams: `python -m benchmarks.streaming`.

    nice python -m benchmarks.streaming [--commits 30] [--rows 6000000] [--files 16] [--rounds 5]

*Latency* is the time from just before a commit until its rows are visible: in the loop of `follow`, or in the
table that a query on Spark writes (the time of its commit). The store with 50 ms for each request is one in
memory for `follow`, and an S3 server behind a slow proxy for Spark. *Throughput* is rows in a second of all
batches of a query, without its start: the source (rows are discarded), the sink (rows are those of Parquet
files) and both, from table to table.

delta-spark, the fast way and the data source take turns in one session with two cores, after a warm-up. Each
ratio is the median of the rounds, as a multiple of delta-spark's throughput. Prints Markdown and writes
`benchmarks/results/bench-streaming.json`. Without the jars of delta-spark: `--ways fast,source`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import spark_jobs
from benchmarks.latency_store import LatencyStore
from benchmarks.statistics import paired_ratio
from delta_core import DeltaTable
from delta_core.clock import SYSTEM_CLOCK
from delta_core.dml.commit_files import CommitMode, commit_new_files
from delta_core.dml.write import write_deltalake
from delta_core.follow import BatchLimits, BatchPlanner, FollowLoop, FollowOptions, follow_batches
from delta_core.schema.arrow import from_arrow
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.option_names import is_secret
from delta_core.table_features.feature import WriterKind
from spark_jobs.session import get_session
from tests.support.delta_spark_reader import SETTINGS, jars_to_ourselves
from tests.support.emulators.installation import installed
from tests.support.emulators.places import Place, s3_place
from tests.support.fault_plan import Fault
from tests.support.fault_proxy import FaultProxy
from tests.support.table_handle import StoreTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RESULT = Path(__file__).parent / "results" / "bench-streaming.json"
WAYS = {"delta": "delta-spark", "fast": "spark_jobs.stream, stream_to", "source": 'format("deltaward")'}
STORE_SECONDS = 0.05
PAUSE_SECONDS = 1.0
WARM_UP = 5
"""Commits that are not counted: the first batches start Python workers and compile code."""
AVAILABLE_NOW = {"availableNow": True}
SCHEMA = "id long, user int, amount double, name string, at timestamp"


def main() -> None:
    """Measure, print the tables and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    ways = tuple(options.ways.split(","))
    report: dict[str, Any] = {
        "machine": {"cpus": os.cpu_count(), "system": platform.system()},
        **{name: getattr(options, name) for name in ("commits", "rows", "files", "rounds")},
        "latency": {},
        "throughput": {},
    }
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place, far = None, {}
        if "fast" in ways and installed("versitygw") is None:
            place = stack.enter_context(s3_place(folder / "s3"))
            proxy = stack.enter_context(FaultProxy(place.endpoint or ""))
            proxy.inject(_Slow())
            far = place.through(proxy.endpoint)
            # Executors find credentials in their environment.
            os.environ |= {name: value for name, value in far.items() if is_secret(name)}
        spark = session(delta="delta" in ways)
        try:
            for title, found in latencies(spark, folder, options.commits, ways) if options.commits else ():
                report["latency"][title] = summary(found)
            if place is not None and options.commits:
                title = f"{WAYS['fast']}, {STORE_SECONDS * 1000:g} ms for each request"
                report["latency"][title] = summary(far_latencies(spark, folder, place, far, options.commits))
            print_latencies(report["latency"])
            print("\n| million rows in a second | | | of delta-spark |\n| --- | --- | --- | --- |")
            for name, measured in throughputs(spark, folder, options, ways):
                report["throughput"][name] = measured
                print_throughput(name, measured)
            report["seconds"] = round(time.perf_counter() - began)
        finally:
            spark.stop()
    options.output.write_text(json.dumps(report, indent=1) + "\n")


def session(*, delta: bool) -> SparkSession:
    """A session with two cores, with the jars of delta-spark if that is measured."""
    conf = {"spark.driver.memory": "3g", "spark.log.level": "ERROR", "spark.ui.enabled": "false"}
    if not delta:
        return get_session(master="local[2]", conf=conf, app_name="streaming")
    with jars_to_ourselves():
        return get_session(master="local[2]", conf={**SETTINGS, **conf}, app_name="streaming")


# ---------------------------------------------------------------- latency


def latencies(
    spark: SparkSession, folder: Path, commits: int, ways: tuple[str, ...]
) -> Iterator[tuple[str, list[float]]]:
    """The latencies of each way in seconds."""
    followed = folder / "followed"
    append(str(followed), -1)
    near = DeltaTable(str(followed)).store
    yield "DeltaTable.follow, local", followed_latencies(near, partial(append, str(followed)), commits)
    far = LatencyStore(put_seconds=STORE_SECONDS, get_seconds=STORE_SECONDS)
    schema = from_arrow(pa.schema([("number", pa.int64()), ("at", pa.float64())]))
    commit_new_files(
        None, far, writer_kind=WriterKind.ARROW_ROWS, mode=CommitMode.CREATE, adds=[], schema=schema
    )
    title = f"DeltaTable.follow, {STORE_SECONDS * 1000:g} ms for each request"
    yield title, followed_latencies(far, partial(append, StoreTable(far)), commits)
    for way in ways:
        yield f"{WAYS[way]}, local", query_latencies(spark, folder / way, way, commits)


def append(table: str | StoreTable, number: int) -> None:
    """Commit one row with the time before the commit."""
    rows = pa.table({"number": pa.array([number], pa.int64()), "at": [time.time()]})
    write_deltalake(table, rows, mode="append")


def append_all(write: Callable[[int], None], commits: int, pause: float) -> None:
    """Commit rows one after the other."""
    for number in range(commits):
        write(number)
        time.sleep(pause)


def followed_latencies(store: LogStore, write: Callable[[int], None], commits: int) -> list[float]:
    """The latencies of a waiting follower."""
    planner = BatchPlanner(Snapshot.load(store), FollowOptions(starting_version="latest"))
    loop = FollowLoop(
        since=planner.start(), limits=BatchLimits(), position_file=None, wait=True, poll_seconds=0.05
    )
    reader = follow_batches(planner, loop, clock=SYSTEM_CLOCK)
    writer = threading.Thread(target=append_all, args=(write, commits, 0.3))
    found: list[float] = []
    writer.start()
    while len(found) < commits:
        rows = next(reader).to_table()
        found += [time.time() - at for at in rows["at"].to_pylist()]
    writer.join()
    return found


def far_latencies(
    spark: SparkSession, folder: Path, place: Place, options: Mapping[str, str], commits: int
) -> list[float]:
    """The latencies of the fast way with a store behind a slow proxy."""
    bus, target = place.new_table(), place.new_table()
    written: dict[int, float] = {}

    def put(number: int) -> None:
        rows = pa.table({"number": pa.array([number], pa.int64()), "at": [time.time()]})
        write_deltalake(bus, rows, mode="append", storage_options=options)

    def copy(rows: DataFrame, batch_id: int) -> None:
        key = ("copy", batch_id)
        done = spark_jobs.write(rows, target, mode="append", txn=key, storage_options=options)
        if done.version_to is not None:
            written[done.version_to] = time.time()

    put(-1)
    stream = spark_jobs.stream(spark, bus, storage_options=options).foreach_batch(copy)
    query = stream.start(folder / "far")

    def rows() -> int:
        is_there = DeltaTable.is_deltatable(target, storage_options=place.options)
        return DeltaTable(target, storage_options=place.options).count() if is_there else 0

    try:
        wait_for(query, lambda: rows() > 0)
        append_all(put, WARM_UP + commits, 2 * PAUSE_SECONDS)
        wait_for(query, lambda: rows() > WARM_UP + commits)
    finally:
        query.stop()
    found = []
    for batch in DeltaTable(target, storage_options=place.options).follow(starting_version=0, max_files=1):
        at = [row["at"] for row in batch.to_table().to_pylist() if row["number"] >= WARM_UP]
        found += [written[batch.files[0].version] - moment for moment in at]
    return found


class _Slow:
    """Each request takes longer."""

    def next_fault(self, method: str, target: str) -> Fault | None:
        time.sleep(STORE_SECONDS)
        return None


def query_latencies(spark: SparkSession, folder: Path, way: str, commits: int) -> list[float]:
    """The latencies until the rows are in a table that a query writes."""
    bus, target = folder / "bus", folder / "copy"
    append(str(bus), -1)
    query = copying(spark, way, bus, target, folder / "checkpoint", trigger=None)
    try:
        wait_for(query, lambda: (target / "_delta_log" / f"{0:020d}.json").exists())
        append_all(partial(append, str(bus)), WARM_UP + commits, PAUSE_SECONDS)
        wait_for(query, lambda: DeltaTable(str(target)).count() > WARM_UP + commits)
    finally:
        query.stop()
    found = []
    for batch in DeltaTable(str(target)).follow(starting_version=0, max_files=1):
        log = target / "_delta_log" / f"{batch.files[0].version:020d}.json"
        rows = batch.to_table().to_pylist()
        found += [log.stat().st_mtime - row["at"] for row in rows if row["number"] >= WARM_UP]
    return found


def wait_for(query: StreamingQuery, is_true: Callable[[], bool], *, seconds: float = 60) -> None:
    """Wait for a query to get somewhere.

    Raises:
        RuntimeError: the query ended, or it takes too long.
    """
    end = time.monotonic() + seconds
    while not is_true():
        if not query.isActive or time.monotonic() > end:
            raise RuntimeError(f"the query did not get there: {query.status}") from query.exception()
        time.sleep(0.05)


# ------------------------------------------------------------- throughput


def throughputs(
    spark: SparkSession, folder: Path, options: argparse.Namespace, ways: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of each way in a second, for the source, the sink and both."""
    table, files = folder / "input", folder / "files"
    make_input(table, files, options.rows, options.files)
    most_files = max(1, options.files // 4)
    works: Mapping[str, Callable[[str, Path], StreamingQuery]] = {
        "source": lambda way, scratch: discarding(spark, way, table, scratch, most_files),
        "sink": lambda way, scratch: writing(spark, way, files, scratch, most_files),
        "table to table": lambda way, scratch: copying(
            spark, way, table, scratch / "out", scratch / "checkpoint", most_files=most_files
        ),
    }
    for name, start in works.items():
        taken: dict[str, list[float]] = {way: [] for way in ways}
        walls: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(options.rounds + 1):
            for way in ways if number % 2 else reversed(ways):
                scratch = folder / f"{name}-{way}"
                began = time.perf_counter()
                seconds = batch_seconds(start(way, scratch))
                print(f"{name}, {way}: {seconds:.2f} s", file=sys.stderr)
                if number:  # the first one is the warm-up
                    taken[way].append(seconds)
                    walls[way].append(time.perf_counter() - began)
                if name != "source":
                    count = DeltaTable(str(scratch / "out")).count()
                    assert count == options.rows, f"{way} wrote {count} rows"
                shutil.rmtree(scratch)
        found = {
            way: {
                "rows_per_second": options.rows / statistics.median(taken[way]),
                "seconds": taken[way],
                "with_start": walls[way],
            }
            for way in ways
        }
        for way in ways if "delta" in ways else ():
            found[way]["of_delta_spark"] = paired_ratio(taken["delta"], taken[way]).to_json()
        yield name, found


def make_input(table: Path, files: Path, rows: int, count: int) -> None:
    """A table of `count` files, and the same files in a directory of their own."""
    size = -(-rows // count)
    files.mkdir()
    for start in range(0, rows, size):
        ids = pa.array(range(start, min(rows, start + size)), pa.int64())
        numbers = ids.to_numpy()
        part = pa.table(
            {
                "id": ids,
                "user": pa.array(numbers * 7919 % 100_000, pa.int32()),
                "amount": pa.array(numbers * 0.37),
                "name": pa.array([f"name {number}" for number in (numbers % 5000).tolist()]),
                "at": pa.array(1_700_000_000_000_000 + numbers * 1000, pa.timestamp("us", tz="UTC")),
            }
        )
        write_deltalake(str(table), part, mode="append")
    for number, path in enumerate(sorted(table.glob("*.parquet"))):
        shutil.copy(path, files / f"{number:04d}.parquet")


def batch_seconds(query: StreamingQuery) -> float:
    """How long the batches of a query took, without its start."""
    query.awaitTermination()
    return sum(one.durationMs["triggerExecution"] for one in query.recentProgress) / 1000


def discarding(spark: SparkSession, way: str, table: Path, scratch: Path, most_files: int) -> StreamingQuery:
    """A query that reads a table and keeps nothing."""
    if way == "fast":
        stream = spark_jobs.stream(spark, str(table), maxFilesPerTrigger=most_files)
        return stream.foreach_batch(_discard).trigger(**AVAILABLE_NOW).start(scratch / "checkpoint")
    return (
        reading(spark, way, table, most_files)
        .writeStream.foreachBatch(_discard)
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def writing(spark: SparkSession, way: str, files: Path, scratch: Path, most_files: int) -> StreamingQuery:
    """A query that writes the rows of files to a table."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", most_files).parquet(str(files))
    out, checkpoint = scratch / "out", scratch / "checkpoint"
    if way == "fast":
        return spark_jobs.stream_to(rows, str(out), checkpoint=checkpoint, trigger=AVAILABLE_NOW)
    return into(rows, way, out, checkpoint, trigger=AVAILABLE_NOW)


def copying(
    spark: SparkSession,
    way: str,
    table: Path,
    out: Path,
    checkpoint: Path,
    *,
    most_files: int = 1000,
    trigger: Mapping[str, Any] | None = AVAILABLE_NOW,
) -> StreamingQuery:
    """A query from table to table."""
    if way == "fast":
        stream = spark_jobs.stream(spark, str(table), maxFilesPerTrigger=most_files)
        stream = stream.foreach_batch(partial(_copy, str(out)))
        return (stream.trigger(**trigger) if trigger else stream).start(checkpoint)
    return into(reading(spark, way, table, most_files), way, out, checkpoint, trigger=trigger)


def reading(spark: SparkSession, way: str, table: Path, most_files: int) -> DataFrame:
    """A streaming DataFrame of delta-spark's source or of the data source."""
    reader = spark.readStream.format("delta" if way == "delta" else "deltaward")
    return reader.option("maxFilesPerTrigger", most_files).load(str(table))


def into(
    rows: DataFrame, way: str, out: Path, checkpoint: Path, *, trigger: Mapping[str, Any] | None
) -> StreamingQuery:
    """A query into delta-spark's sink or that of the data source."""
    writer = rows.writeStream.format("delta" if way == "delta" else "deltaward")
    writer = writer.option("checkpointLocation", str(checkpoint))
    return (writer.trigger(**trigger) if trigger else writer).start(str(out))


def _discard(rows: DataFrame, batch_id: int) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _copy(target: str, rows: DataFrame, batch_id: int) -> None:
    spark_jobs.write(rows, target, mode="append", txn=("copy", batch_id))


# ----------------------------------------------------------------- report


def summary(seconds: list[float]) -> dict[str, Any]:
    """The median and the 95th percentile, with all measurements."""
    return {
        "p50": statistics.median(seconds),
        "p95": statistics.quantiles(seconds, n=20)[-1],
        "seconds": [round(value, 4) for value in seconds],
    }


def print_latencies(found: Mapping[str, Any]) -> None:
    """One line for each way."""
    print("\n| from a commit to its rows | p50 | p95 |\n| --- | --- | --- |")
    for title, one in found.items():
        print(f"| {title} | {one['p50']:.3f} s | {one['p95']:.3f} s |", flush=True)


def print_throughput(name: str, ways: Mapping[str, Any]) -> None:
    """One line for each way."""
    for way, one in ways.items():
        ratio = one.get("of_delta_spark")
        cell = f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]" if ratio else ""
        print(f"| {name} | {WAYS[way]} | {one['rows_per_second'] / 1e6:.2f} | {cell} |", flush=True)


if __name__ == "__main__":
    main()
