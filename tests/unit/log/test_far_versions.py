"""One stray name may say any version up to 2^63 - 1: what lies between is counted, and never listed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_core.clock import ManualClock
from delta_core.errors import CorruptLogError, DeltaWarning, LogGapError
from delta_core.log.listing import MAX_LOOKUPS
from delta_core.log.log_path import MAX_VERSION
from delta_core.log.log_segment import build_segment, extend_segment
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from tests.support.log_builder import LogBuilder

FAR = [10**10, MAX_VERSION]
LIMIT_BYTES = 32 << 20


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t").create().appends(2)


@pytest.fixture
def bounded() -> Iterator[None]:
    """No more memory than a few versions need; the cap of lookups bounds the time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < LIMIT_BYTES
    finally:
        tracemalloc.stop()


class AskedStore(LocalLogStore):
    """Counts what is looked up by name, and lists like a store that may leave something out."""

    heads = 0

    @property
    def consistent_listing(self) -> bool:
        return False

    def head(self, path: str) -> ObjectInfo:
        self.heads += 1
        return super().head(path)


@pytest.mark.parametrize("far", FAR)
def test_a_commit_far_away_is_a_gap(log: LogBuilder, bounded: None, far: int) -> None:
    segment, snapshot = build_segment(log.store), Snapshot.load(log.store)
    log.raw(f"{far:020d}.json", b"{}")
    with pytest.raises(LogGapError, match=r"version 3, 4, 5, 6, 7, \.\.\. is missing"):
        build_segment(log.store)
    assert extend_segment(log.store, segment) is None
    with pytest.raises(LogGapError):
        snapshot.refresh()
    assert build_segment(log.store, version=2) == segment


@pytest.mark.parametrize("far", FAR)
def test_a_damaged_checkpoint_far_away(log: LogBuilder, bounded: None, far: int) -> None:
    log.raw(f"{far:020d}.checkpoint.parquet", b"junk")
    with pytest.warns(DeltaWarning, match="is ignored"), pytest.raises(CorruptLogError, match="cannot be"):
        Snapshot.load(log.store)
    assert Snapshot.load(log.store, version=2).files.num_files == 2


def test_what_cannot_be_looked_up_as_a_whole_is_not_looked_up(log: LogBuilder) -> None:
    store, clock = AskedStore(log.root), ManualClock()
    log.raw(f"{MAX_LOOKUPS + 3:020d}.json", b"{}")
    with pytest.raises(LogGapError):
        build_segment(store, clock=clock)
    several = store.heads
    assert several >= MAX_LOOKUPS
    log.raw(f"{MAX_LOOKUPS + 4:020d}.json", b"{}")
    (log.log / f"{MAX_LOOKUPS + 3:020d}.json").unlink()
    with pytest.raises(LogGapError):
        build_segment(store, clock=clock)
    assert store.heads - several < 20
