"""Opening tables of a million files: each case times one call, on a regular log and on a realistic one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.contestant import Contestant, Timing
from benchmarks.snapshot_log import partition, snapshot_log, write_commit

FILES = 1_000_000


def open_one_partition(kind: str, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """Open the table and list the paths of one partition's files."""
    column, value = partition(kind, 0)
    timing = contestant.time(
        "open_one_partition", uri=str(snapshot_log(cache, kind, files=FILES)), column=column, value=value
    )
    return _checked(timing, contestant)


def another_partition(kind: str, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """List another partition's files with the handle that is open."""
    uri = str(snapshot_log(cache, kind, files=FILES))
    column, value = partition(kind, 0)
    contestant.time("open_one_partition", uri=uri, column=column, value=value)
    column, value = partition(kind, 7)
    return _checked(contestant.time("list_partition", uri=uri, column=column, value=value), contestant)


def open_metadata(kind: str, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """Protocol and metadata, without any file."""
    return contestant.time("open_metadata", uri=str(snapshot_log(cache, kind, files=FILES)))


def refresh(kind: str, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """One commit later: the same handle, list one partition's files again."""
    table, copy = snapshot_log(cache, kind, files=FILES), scratch / "table"
    (copy / "_delta_log").mkdir(parents=True)
    for name in (table / "_delta_log").iterdir():
        (copy / "_delta_log" / name.name).hardlink_to(name)
    column, value = partition(kind, 0)
    contestant.time("open_one_partition", uri=str(copy), column=column, value=value)
    write_commit(copy, kind, version=20, number=FILES + 10)
    return contestant.time("refresh", uri=str(copy))


def first_range(kind: str, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """A range predicate over all files' statistics, which nobody has looked at yet."""
    uri = str(snapshot_log(cache, kind, files=FILES))
    contestant.time("open_for_statistics", uri=uri)
    return _range(contestant, uri, low=400_000_500)


def second_range(kind: str, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """Another range of the same column afterwards."""
    first_range(kind, contestant, cache, scratch)
    return _range(contestant, str(snapshot_log(cache, kind, files=FILES)), low=700_000_500)


def _range(contestant: Contestant, uri: str, *, low: int) -> Timing:
    timing = contestant.time("range_predicate", uri=uri, column="id", low=low, high=low + 10_000_000)
    if timing.value not in (10_001, 10_002):
        raise AssertionError(f"{contestant.engine} found {timing.value} files")
    return timing


def _checked(timing: Timing, contestant: Contestant) -> Timing:
    if not 1_000 < timing.value < 20_000:
        raise AssertionError(f"{contestant.engine} listed {timing.value} files")
    return timing


SNAPSHOT_RUNS = {
    f"{name}-{kind}-1m": (partial(run, kind), note)
    for kind in ("regular", "realistic")
    for name, run, note in (
        ("open-one-partition", open_one_partition, "open and list the paths of one partition"),
        ("another-partition", another_partition, "another partition, handle kept"),
        ("open-metadata", open_metadata, "protocol and metadata only; deltalake with without_files"),
        ("refresh", refresh, "after one commit, handle kept"),
    )
}
"""Case name -> (run, note)."""

_STATISTICS = {
    "first-range": (first_range, "files that a range leaves over, first look; the peer parses every text"),
    "second-range": (second_range, "another range of the same column; the peer parses every text again"),
}

STATISTICS_RUNS = {
    f"{name}-{kind}-1m": (partial(run, kind), note)
    for kind in ("regular", "realistic")
    for name, (run, note) in _STATISTICS.items()
}
"""As SNAPSHOT_RUNS, against Arrow's JSON reader."""
