"""A commit that took long, verified in a store whose answers do not tell whether it stands: unknown, kept."""

from __future__ import annotations

import pytest

from delta_core.errors import ObjectNotFoundError
from delta_core.log.log_path import checkpoint_path, commit_path
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from delta_core.transaction.commit_result import CommitResult, Unknown, may_discard_files
from tests.support.faulty_store import FaultyStore
from tests.unit.transaction.commit_harness import Harness

LATE_MS = 2 * 3_600_000


class LaggingStore(FaultyStore):
    """Its listings lack what was written last, and do not promise otherwise.

    Attributes:
        unseen: paths that look-ups do not show.
        unlisted: paths that listings do not show.
        one_time_ms: the time of every object, where the store tells times by a coarse clock.
    """

    def __init__(self, inner: LocalLogStore) -> None:
        super().__init__(inner)
        self.unseen: set[str] = set()
        self.unlisted: set[str] = set()
        self.one_time_ms: int | None = None

    @property
    def consistent_listing(self) -> bool:
        return False

    def head(self, path: str) -> ObjectInfo:
        if path in self.unseen:
            raise ObjectNotFoundError(path)
        return self._timed(super().head(path))

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        found = super().list_directory(path, start_after=start_after)
        return [self._timed(info) for info in found if info.path not in self.unlisted]

    def _timed(self, info: ObjectInfo) -> ObjectInfo:
        if self.one_time_ms is None:
            return info
        return ObjectInfo(path=info.path, size_bytes=info.size_bytes, modified_ms=self.one_time_ms)


@pytest.fixture
def lagging(harness: Harness) -> LaggingStore:
    """The version before the one that is committed is gone."""
    store = LaggingStore(harness.store.inner)
    harness.store = store
    store.inner.delete(commit_path(0))
    return store


def _kept(harness: Harness, result: CommitResult) -> str:
    """The commit is there, and so are its files, whatever becomes of it."""
    assert isinstance(result, Unknown)
    assert not may_discard_files(result)
    assert harness.versions_of_mine() == [1]
    return str(result.error)


def test_a_listing_without_the_version_proves_nothing(harness: Harness, lagging: LaggingStore) -> None:
    lagging.unlisted = {commit_path(1)}
    said = _kept(harness, harness.run(known_ago_ms=LATE_MS))
    assert "does not contain version 1, which was just written" in said


def test_a_checkpoint_of_the_same_moment_proves_nothing(harness: Harness, lagging: LaggingStore) -> None:
    lagging.inner.put(checkpoint_path(7), b"x")
    lagging.one_time_ms = harness.clock.now_ms()
    assert "has the same time as that version" in _kept(harness, harness.run(known_ago_ms=LATE_MS))


def test_a_version_before_that_a_listing_may_lack_proves_nothing(
    harness: Harness, lagging: LaggingStore
) -> None:
    said = _kept(harness, harness.run(known_ago_ms=LATE_MS))
    assert "It is not known whether version 0 is still in the log" in said


def test_a_version_that_is_listed_and_gone_is_unknown(harness: Harness, lagging: LaggingStore) -> None:
    lagging.unseen = {commit_path(1)}
    said = _kept(harness, harness.run(known_ago_ms=LATE_MS))
    assert "Version 1, which was just written, is missing" in said
