"""The time from a commit to its rows: `python -m benchmarks.streaming [--commits N] [--spark]`.

Prints the median and the 95th percentile in seconds, for `DeltaTable.follow` and, with `--spark`, for a query
of `spark_jobs.stream` that writes into another table. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake


def append(table: Path, number: int) -> None:
    """Commit one row with the time before the commit."""
    rows = pa.table({"number": pa.array([number], pa.int64()), "at": [time.time()]})
    write_deltalake(str(table), rows, mode="append")


def append_all(table: Path, commits: int, pause: float) -> None:
    """Commit rows one after the other."""
    for number in range(commits):
        append(table, number)
        time.sleep(pause)


def follow_latencies(folder: Path, commits: int) -> list[float]:
    """The latencies of a waiting follower."""
    table = folder / "followed"
    append(table, -1)
    reader = DeltaTable(str(table)).follow(wait=True, poll_seconds=0.05, starting_version="latest")
    writer = threading.Thread(target=append_all, args=(table, commits, 0.3))
    found: list[float] = []
    writer.start()
    while len(found) < commits:
        rows = next(reader).to_table()
        found += [time.time() - at for at in rows["at"].to_pylist()]
    writer.join()
    return found


def spark_latencies(folder: Path, commits: int) -> list[float]:
    """The latencies until the rows are in a table that a query writes."""
    import spark_jobs
    from spark_jobs.session import get_session

    spark = get_session(master="local[2]", conf={"spark.ui.enabled": "false"}, app_name="streaming")
    table, target = folder / "bus", folder / "copy"
    append(table, -1)
    query = (
        spark_jobs.stream(spark, str(table))
        .foreach_batch(partial(_copy, str(target)))
        .start(folder / "checkpoint")
    )
    try:
        while not DeltaTable.is_deltatable(str(target)):  # the first batch starts Python workers
            time.sleep(0.1)
        append_all(table, commits, 1.0)
        while DeltaTable(str(target)).count() <= commits:
            time.sleep(0.1)
    finally:
        query.stop()
        spark.stop()
    copied = DeltaTable(str(target))
    visible = {entry.version: entry.timestamp_ms / 1000 for entry in copied.history()}
    return [
        visible[batch.files[0].version] - at
        for batch in copied.follow(starting_version=1, max_files=1)
        for at in batch.to_table()["at"].to_pylist()
    ]


def _copy(target: str, rows: object, batch_id: int) -> None:
    import spark_jobs

    spark_jobs.write(rows, target, mode="append", txn=("copy", batch_id))


def main() -> None:
    """Measure, and print one line for each way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--spark", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        ways = {"follow": follow_latencies} | ({"spark": spark_latencies} if arguments.spark else {})
        for way, measure in ways.items():
            found = measure(Path(name), arguments.commits)
            p95 = statistics.quantiles(found, n=20)[-1]
            print(f"{way}: {len(found)} commits, p50 {statistics.median(found):.3f} s, p95 {p95:.3f} s")


if __name__ == "__main__":
    main()
