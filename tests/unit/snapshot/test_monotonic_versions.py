"""On a store with weak listings a process never shows an older version than it has seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from delta_core.errors import StaleListingError, TableNotFoundError
from delta_core.snapshot.monotonic_versions import MonotonicVersions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.transaction import Transaction
from tests.support.log_builder import LogBuilder, add, metadata, protocol


class LaggingStore(LocalLogStore):
    """Does not list, nor find, some versions, for a number of listings."""

    hidden: frozenset[int] = frozenset()
    lags = 0

    @property
    def consistent_listing(self) -> bool:
        return False

    def lag(self, *versions: int, listings: int) -> None:
        self.hidden, self.lags = frozenset(versions), listings

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        self.lags -= 1
        if self.lags < 0:
            self.hidden = frozenset()
        found = super().list_directory(path, start_after=start_after)
        return [info for info in found if not self._hides(info.path)]

    def head(self, path: str) -> ObjectInfo:
        return super().head("gone" if self._hides(path) else path)

    def _hides(self, path: str) -> bool:
        return any(f"{version:020d}" in path for version in self.hidden)


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t").create(add("a")).appends(3)


@pytest.fixture
def store(log: LogBuilder) -> LaggingStore:
    return LaggingStore(log.root, clock=log.clock)


def _load(store: LaggingStore, log: LogBuilder) -> Snapshot:
    return Snapshot.load(store, clock=log.clock)


def test_a_listing_that_lags_for_a_while_is_asked_again(store: LaggingStore, log: LogBuilder) -> None:
    assert _load(store, log).version == 3
    store.lag(2, 3, listings=3)
    assert _load(store, log).version == 3
    assert store.hidden == frozenset()


def test_one_that_goes_on_lagging_is_an_error(store: LaggingStore, log: LogBuilder) -> None:
    snapshot = _load(store, log)
    store.lag(2, 3, listings=1000)
    with pytest.raises(StaleListingError, match="outdated version") as caught:
        _load(store, log)
    assert caught.value.retryable
    with pytest.raises(StaleListingError):
        snapshot.refresh()
    # A version that is asked for by number is no promise of the newest.
    assert Snapshot.load(store, version=1, clock=log.clock).version == 1


def test_an_own_commit_counts_as_seen(store: LaggingStore, log: LogBuilder) -> None:
    snapshot = _load(store, log)
    committed = Transaction.begin(snapshot, operation="WRITE", clock=log.clock).add(add("n")).commit()
    assert isinstance(committed, Committed)
    assert committed.version == 4
    store.lag(4, listings=1000)
    with pytest.raises(StaleListingError, match="version 3, and this process has seen version 4"):
        _load(store, log)


def test_a_handle_from_before_an_own_commit_does_not_refresh_to_less(
    store: LaggingStore, log: LogBuilder
) -> None:
    """The commit was acknowledged, and its snapshot could not be made: the older one is all there is."""
    snapshot = _load(store, log)
    assert isinstance(
        Transaction.begin(snapshot, operation="WRITE", clock=log.clock).add(add("n")).commit(), Committed
    )
    store.lag(4, listings=3)
    assert snapshot.refresh().version == 4
    store.lag(4, listings=1000)
    with pytest.raises(StaleListingError, match="version 3, and this process has seen version 4"):
        snapshot.refresh()


def test_a_log_that_is_not_listed_at_all_is_asked_again(store: LaggingStore, log: LogBuilder) -> None:
    _load(store, log)
    store.lag(0, 1, 2, 3, listings=2)
    assert _load(store, log).version == 3
    store.lag(0, 1, 2, 3, listings=1000)
    with pytest.raises(TableNotFoundError):
        _load(store, log)


def test_another_table_at_the_place_begins_from_nothing(store: LaggingStore, log: LogBuilder) -> None:
    assert _load(store, log).version == 3
    shutil.rmtree(log.root)
    again = LogBuilder(log.root)
    again.commit(protocol(), metadata(id="another"), add("b"))
    assert _load(store, log).version == 0


def test_a_store_that_lists_what_there_is_costs_nothing(log: LogBuilder) -> None:
    floors = MonotonicVersions()
    floors.note(log.store, "id", 7)
    assert floors.floor(log.store) == -1


def test_only_so_many_tables_are_remembered(tmp_path: Path) -> None:
    floors = MonotonicVersions(max_tables=2)
    stores = [LaggingStore(tmp_path / name) for name in "abc"]
    for version, store in enumerate(stores):
        floors.note(store, "id", version)
    assert [floors.floor(store, "id") for store in stores] == [-1, 1, 2]
    floors.note(stores[2], "id", 1)
    assert floors.floor(stores[2], "id") == 2
    assert floors.floor(stores[2], "other") == -1
    floors.forget(stores[2])
    assert floors.floor(stores[2]) == -1
