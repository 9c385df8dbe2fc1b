"""What is measured: each case prepares a fresh input per run and names the operation to time."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import data, merge_data
from benchmarks.checkpoint_cases import CHECKPOINT_RUNS
from benchmarks.contestant import Contestant, Timing
from benchmarks.row_statement_cases import ROW_STATEMENT_RUNS, SPARK_STATEMENT_RUNS
from benchmarks.snapshot_cases import SNAPSHOT_RUNS, STATISTICS_RUNS
from benchmarks.spark_merge_cases import SPARK_MERGE_RUNS
from benchmarks.vacuum_cases import VACUUM_RUNS


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One comparison.

    Attributes:
        ours: the engine (and operation) under test.
        peers: the engines it is held against; the better of them is the bar.
        run: prepares one input in a scratch directory, times one operation on it, checks the answer.
    """

    name: str
    ours: str
    peers: tuple[str, ...]
    run: Callable[[Contestant, Path, Path], Timing]
    note: str = ""


def _open(contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    table = data.wide_log(cache, files=100_000)
    timing = contestant.time("open_table", uri=str(table))
    _expect(timing.value, 100_010)
    return timing


def _appends(contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    table = scratch / "appends"
    # Per-append time is compared: the Spark contestant commits some hundred times slower, and a group
    # gathers whatever there is.
    count = 5 if "spark" in contestant.engine else 1000 if "group" in contestant.engine else 50
    contestant.time("create_for_appends", uri=str(table))
    timing = contestant.time("append_rows", uri=str(table), count=count)
    return Timing(seconds=timing.seconds / count, value=timing.value, peak_rss_bytes=timing.peak_rss_bytes)


def _unsynced_appends(contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    table, count = scratch / "appends", 200
    # deltalake never flushes a file, so its appends are unsynced as they are.
    operation = "append_rows_unsynced" if contestant.engine == "deltaward" else "append_rows"
    contestant.time("create_for_appends", uri=str(table))
    timing = contestant.time(operation, uri=str(table), count=count)
    return Timing(seconds=timing.seconds / count, value=timing.value, peak_rss_bytes=timing.peak_rss_bytes)


def _compact(contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    table = data.clone(data.lineitem_table(cache, files=1000), scratch / "compact")
    timing = contestant.time("compact", uri=str(table))
    if not 0 < int(timing.value) <= 4:
        raise AssertionError(f"{contestant.engine} left {timing.value} files")
    return timing


def _z_order(contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    table = data.clone(data.lineitem_table(cache, files=1000), scratch / "z-order")
    timing = contestant.time("z_order", uri=str(table), columns=["l_shipdate", "l_partkey"])
    if not 0 < int(timing.value) <= 8:
        raise AssertionError(f"{contestant.engine} left {timing.value} files")
    return timing


def _write(contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    return contestant.time("write", source=str(data.lineitem(cache)), uri=str(scratch / "write"))


def _merge(contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    table = data.clone(merge_data.merge_target(cache), scratch / "merge")
    timing = contestant.time(
        "merge", uri=str(table), source=str(merge_data.merge_source(cache)), on=merge_data.ON
    )
    _expect(timing.value, [merge_data.UPDATES, merge_data.INSERTS])
    return timing


def _expect(found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"found {found}, expected {wanted}")


def fresh(scratch: Path) -> Path:
    """An empty scratch directory."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    return scratch


def _write_partitions(contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    table = scratch / "partitions"
    timing = contestant.time("write_partitions", uri=str(table), partitions=_PARTITIONS)
    found = sum(1 for _ in table.glob("p=*/*.parquet"))
    if found != _PARTITIONS:
        raise AssertionError(f"{contestant.engine} wrote {found} files")
    return timing


_PARTITIONS = 10_000

CASES = (
    Case(
        name="write-10k-partitions",
        ours="deltaward",
        peers=("deltalake",),
        run=_write_partitions,
        note=f"one write of {_PARTITIONS:,} partitions of one row; ours flushes all files and the commit",
    ),
    Case(
        name="open-100k-files",
        ours="deltaward",
        peers=("deltalake", "delta_spark"),
        run=_open,
        note="open the latest version and list the live files; checkpoint by deltalake plus 10 commits",
    ),
    Case(
        name="small-appends",
        ours="deltaward",
        peers=("deltalake", "delta_spark"),
        run=_appends,
        note="seconds per one-row append, handle kept; ours fsyncs every data file and commit",
    ),
    Case(
        name="small-appends-unsynced",
        ours="deltaward",
        peers=("deltalake",),
        run=_unsynced_appends,
        note="the same, 200 of them, without fsync for either",
    ),
    Case(
        name="group-commit",
        ours="deltaward_group",
        peers=("deltaward",),
        run=_appends,
        note="seconds per one-row append in groups, against single commits; both fsync",
    ),
    Case(
        name="compact-1000-files-inline",
        ours="deltaward",
        peers=("deltalake", "delta_spark"),
        run=_compact,
        note="lineitem SF1 in 1,000 files",
    ),
    Case(
        name="compact-1000-files-spark",
        ours="deltaward_spark",
        peers=("deltalake", "delta_spark"),
        run=_compact,
        note="the same, task map on Spark local[2]",
    ),
    Case(
        name="z-order-1000-files-inline",
        ours="deltaward",
        peers=("deltalake", "delta_spark"),
        run=_z_order,
        note="lineitem SF1 in 1,000 files by (l_shipdate, l_partkey), target 100 MiB, snappy",
    ),
    Case(
        name="z-order-1000-files-spark",
        ours="deltaward_spark",
        peers=("deltalake", "delta_spark"),
        run=_z_order,
        note="the same over runs on disk, task maps on Spark local[2]",
    ),
    Case(
        name="merge-120k-into-6m",
        ours="deltaward_spark",
        peers=("delta_spark",),
        run=_merge,
        note="60,000 updates and 60,000 inserts by `*` clauses into lineitem SF1 in 8 files, copy-on-write",
    ),
    Case(
        name="write-inline",
        ours="deltaward",
        peers=("deltalake",),
        run=_write,
        note="lineitem SF1, one Parquet file in, a new table out, streamed",
    ),
    Case(
        name="write-spark",
        ours="deltaward_spark",
        peers=("spark_plain", "delta_spark"),
        run=_write,
        note="lineitem SF1; spark_plain is df.write.parquet without any table",
    ),
    *(
        Case(name=name, ours="deltaward", peers=("deltalake",), run=run, note=note)
        for name, (run, note) in (SNAPSHOT_RUNS | CHECKPOINT_RUNS | ROW_STATEMENT_RUNS | VACUUM_RUNS).items()
    ),
    *(
        Case(name=name, ours="deltaward_spark", peers=("deltalake",), run=run, note=note)
        for name, (run, note) in SPARK_STATEMENT_RUNS.items()
    ),
    *(
        Case(name=name, ours="deltaward_spark", peers=peers, run=run, note=note)
        for name, (run, peers, note) in SPARK_MERGE_RUNS.items()
    ),
    *(
        Case(name=name, ours="deltaward", peers=("pyarrow_json",), run=run, note=note)
        for name, (run, note) in STATISTICS_RUNS.items()
    ),
)
