"""Publishing commits through a store that loses answers, and the hint through one that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.clock import ManualClock
from delta_core.errors import (
    AmbiguousWriteError,
    CloneDivergedError,
    DeltaWarning,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
)
from delta_core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint
from delta_core.log.log_path import commit_path
from delta_core.maintenance.clone.history.publish import point_hint, publish_commit
from delta_core.storage.local import LocalLogStore
from delta_core.storage.modified_time import set_modified_time
from tests.support.faulty_store import FaultyStore, PutFault

PATH = commit_path(1)
COMMIT = b'{"commitInfo":{}}\n'


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    return FaultyStore(LocalLogStore(tmp_path))


@pytest.mark.parametrize(
    ("faults", "is_new"),
    [
        ([PutFault.DROP_REQUEST], True),
        ([PutFault.DROP_RESPONSE], False),
        ([PutFault.EXISTS_BUT_MINE], False),
        ([PutFault.CONFLICT_409, PutFault.NOT_WRITTEN], True),
    ],
)
def test_a_commit_lands_once(store: FaultyStore, faults: list[PutFault], is_new: bool) -> None:
    store.puts = faults
    assert publish_commit(store, PATH, COMMIT, clock=ManualClock(0)) is is_new
    assert store.inner.read(PATH) == COMMIT


@pytest.mark.parametrize(
    ("fault", "error"),
    [(PutFault.DENIED, StorePermissionError), (PutFault.DROP_REQUEST, AmbiguousWriteError)],
)
def test_a_store_that_never_takes_it(store: FaultyStore, fault: PutFault, error: type[StorageError]) -> None:
    store.puts = [fault] * 9
    with pytest.raises(error):
        publish_commit(store, PATH, COMMIT, clock=ManualClock(0))
    with pytest.raises(ObjectNotFoundError):
        store.inner.read(PATH)


def test_a_commit_of_somebody_else(store: FaultyStore) -> None:
    store.inner.put_if_absent(PATH, b"{}\n")
    with pytest.raises(CloneDivergedError):
        publish_commit(store, PATH, COMMIT, clock=ManualClock(0))


def test_the_hint_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalLogStore(tmp_path)
    for version in (3, 2):
        point_hint(store, LastCheckpoint(version=version))
    point_hint(store, None)
    found = read_last_checkpoint(store)
    assert found is not None
    assert found.version == 3

    def failing(self: LocalLogStore, path: str, data: bytes) -> None:
        raise StorageError("full")

    monkeypatch.setattr(LocalLogStore, "put", failing)
    with pytest.warns(DeltaWarning, match="_last_checkpoint"):
        point_hint(store, LastCheckpoint(version=4))


def test_times_of_a_store_that_has_none(store: FaultyStore) -> None:
    store.inner.put_if_absent(PATH, COMMIT)
    assert not set_modified_time(store, PATH, 1_000)
    assert set_modified_time(store.inner, PATH, 1_000)
    assert store.head(PATH).modified_ms == 1_000
    with pytest.raises(ObjectNotFoundError):
        set_modified_time(store.inner, commit_path(2), 1_000)
