"""A commit that comes late: the log may be another one by now, or have gone past it."""

from __future__ import annotations

import os
from dataclasses import replace
from unittest.mock import patch

import pytest

from delta_core.errors import (
    ObjectNotFoundError,
    StaleCommitError,
)
from delta_core.log.log_path import LAST_CHECKPOINT_PATH, checkpoint_path, commit_path
from delta_core.storage.log_store import ObjectInfo
from delta_core.transaction.commit_result import (
    Committed,
    Rejected,
    Unknown,
    may_discard_files,
)
from delta_core.transaction.observer import CommitPhase
from tests.support.faulty_store import FaultyStore, PutFault
from tests.unit.transaction.commit_harness import DAY_MS, Harness, body


class Replaces:
    """Drops the table right before a write, makes another of it, and lets half an hour pass."""

    def __init__(self, harness: Harness, *, before: int, versions: int) -> None:
        self.harness, self.before, self.versions = harness, before, versions

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if (phase, version) != (CommitPhase.BEFORE_PUT, self.before):
            return
        for path in sorted((self.harness.store.inner.root / "_delta_log").iterdir()):
            path.unlink()
        self.harness.clock.advance(1_800)
        for number in range(self.versions):
            self.harness.store.inner.put_if_absent(commit_path(number), body(f"new-{number}", number))


@pytest.mark.parametrize("raced", [False, True])
@pytest.mark.parametrize("versions", [0, 1, 2, 3, 4])
def test_a_table_that_is_made_anew_meanwhile_gets_no_acknowledged_commit(
    harness: Harness, raced: bool, versions: int
) -> None:
    first = harness.store.inner.head(commit_path(0))
    if raced:
        harness.other_commits(1)
    tried = 1 + raced
    harness.observer = Replaces(harness, before=tried, versions=versions)
    result = harness.run(version_file=first)
    assert isinstance(result, Rejected)
    assert isinstance(result.error, StaleCommitError)
    # What landed cannot be taken back, and its files are kept.
    landed = versions <= tried
    assert harness.versions_of_mine() == ([tried] if landed else [])
    assert result.files_referenced == landed


@pytest.mark.parametrize("same_bytes", [True, False])
def test_a_log_that_was_written_again_with_the_same_bytes_leaves_it_unknown(
    harness: Harness, same_bytes: bool
) -> None:
    """Who was told that it is lost would append the same rows once more, and readers would see both."""
    store = harness.store.inner
    first = store.head(commit_path(0))

    class CopiedBack:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is not CommitPhase.BEFORE_PUT:
                return
            data = store.read(commit_path(0)) + (b"" if same_bytes else b"\n")
            store.delete(commit_path(0))
            store.put_if_absent(commit_path(0), data)
            os.utime(store.root / commit_path(0), (1, 1))
            harness.clock.advance(60)

    harness.observer = CopiedBack()
    result = harness.run(version_file=first)
    assert isinstance(result, Unknown if same_bytes else Rejected)
    assert harness.versions_of_mine() == [1]
    assert not may_discard_files(result)


def test_a_slow_write_looks_for_the_version_before_and_no_further(harness: Harness) -> None:
    class Slow:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.BEFORE_PUT:
                harness.clock.advance(60)

    harness.observer = Slow()
    result = harness.run(version_file=harness.store.inner.head(commit_path(0)))
    assert result == Committed(version=1, recovered=False, attempts=1, txn_id="mine")
    assert harness.store.listed == []


def test_snapshot_older_than_half_the_log_retention_is_refused_before_writing(harness: Harness) -> None:
    result = harness.run(known_ago_ms=15 * DAY_MS + 1)
    assert isinstance(result, Rejected)
    assert isinstance(result.error, StaleCommitError)
    assert harness.store.put_paths == []
    assert may_discard_files(result)


def test_write_below_the_cleaned_up_log_is_reported_as_lost_and_keeps_its_files(harness: Harness) -> None:
    harness.store.inner.delete(commit_path(0))
    result = harness.run(known_ago_ms=2 * 3_600_000)
    assert isinstance(result, Rejected)
    assert isinstance(result.error, StaleCommitError)
    assert result.files_referenced
    assert not may_discard_files(result)


HOURS_AGO_MS = 2 * 3_600_000


def cleaned_up(
    harness: Harness, *, checkpoint_seconds_later: float | None, checkpoint_version: int = 7
) -> None:
    """The version before is gone, and there is a checkpoint of a later one, written so much later."""
    harness.store.inner.delete(commit_path(0))
    if checkpoint_seconds_later is not None:
        harness.store.inner.put(checkpoint_path(checkpoint_version), b"x")
        path = harness.store.inner.root / checkpoint_path(checkpoint_version)
        time = path.stat().st_mtime + checkpoint_seconds_later
        os.utime(path, (time, time))


def test_write_below_an_older_checkpoint_is_reported_as_lost(harness: Harness) -> None:
    cleaned_up(harness, checkpoint_seconds_later=-3600)
    result = harness.run(known_ago_ms=HOURS_AGO_MS)
    assert isinstance(result, Rejected)
    assert "existed before" in result.error.cause
    assert not may_discard_files(result)


@pytest.mark.parametrize("first", [PutFault.DROP_REQUEST, PutFault.DROP_RESPONSE])
def test_a_lost_write_after_an_unclear_one_tells_nothing_of_that(harness: Harness, first: PutFault) -> None:
    """The first may have landed while there was time, and be in what the checkpoint says."""

    def wakes_up(path: str) -> None:
        if harness.store.put_paths:
            if first is PutFault.DROP_RESPONSE:
                harness.store.inner.delete(path)
            cleaned_up(harness, checkpoint_seconds_later=-3600)

    harness.store.puts = [first]
    harness.store.before_put = wakes_up
    read = harness.store.inner.read
    with patch.object(harness.store.inner, "read", side_effect=[ObjectNotFoundError("cached"), read]):
        result = harness.run(known_ago_ms=HOURS_AGO_MS)
    assert isinstance(result, Unknown)
    assert len(harness.store.put_paths) == 2
    assert not may_discard_files(result)


def test_a_commit_that_others_have_built_on_and_checkpointed_stands(harness: Harness) -> None:
    cleaned_up(harness, checkpoint_seconds_later=3600)
    assert isinstance(harness.run(known_ago_ms=HOURS_AGO_MS), Committed)


@pytest.mark.parametrize(("seconds_later", "stands"), [(-3600, False), (3600, True)])
def test_a_checkpoint_of_the_very_version_tells(harness: Harness, seconds_later: float, stands: bool) -> None:
    cleaned_up(harness, checkpoint_seconds_later=seconds_later, checkpoint_version=1)
    assert isinstance(harness.run(known_ago_ms=HOURS_AGO_MS), Committed) is stands


@pytest.mark.parametrize(("checkpoint_version", "stands"), [(0, True), (None, False)])
def test_a_checkpoint_of_the_version_before_stands_for_its_commit(
    harness: Harness, checkpoint_version: int | None, stands: bool
) -> None:
    seconds_later = None if checkpoint_version is None else -3600
    cleaned_up(harness, checkpoint_seconds_later=seconds_later, checkpoint_version=checkpoint_version or 0)
    assert isinstance(harness.run(known_ago_ms=HOURS_AGO_MS), Committed) is stands


def test_a_version_that_a_listing_lacks_is_looked_up(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = harness.store.list_directory
    monkeypatch.setattr(
        harness.store,
        "list_directory",
        lambda path, start_after=None: listed(path, start_after=start_after)[-1:],
    )
    assert isinstance(harness.run(known_ago_ms=HOURS_AGO_MS), Committed)


def test_a_listing_that_lags_shows_versions_that_are_gone_and_proves_nothing(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in (1, 2, 3):
        harness.other_commits(version)
        # A commit may be as old as the next one by a coarse clock, and then nothing would be known.
        os.utime(harness.store.inner.root / commit_path(version), (version, version))
    before = harness.store.list_directory("_delta_log")
    for version in (0, 1, 2):
        harness.store.inner.delete(commit_path(version))
    monkeypatch.setattr(FaultyStore, "consistent_listing", property(lambda _: False))
    monkeypatch.setattr(harness.store, "list_directory", lambda path, start_after=None: before)
    result = harness.run(known_ago_ms=HOURS_AGO_MS)
    assert isinstance(result, Rejected)
    assert isinstance(result.error, StaleCommitError)
    assert result.files_referenced


def test_a_hint_to_a_later_checkpoint_proves_nothing(harness: Harness) -> None:
    harness.store.inner.put(LAST_CHECKPOINT_PATH, b'{"version":7,"size":1}')
    assert isinstance(harness.run(known_ago_ms=HOURS_AGO_MS), Committed)


def test_a_commit_into_an_empty_log_is_lost(harness: Harness) -> None:
    cleaned_up(harness, checkpoint_seconds_later=None)
    result = harness.run(known_ago_ms=HOURS_AGO_MS)
    assert isinstance(result, Rejected)
    assert "no longer in the log" in result.error.cause


def test_times_that_do_not_tell_leave_it_unknown(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned_up(harness, checkpoint_seconds_later=0)
    listed = harness.store.list_directory

    def at_one_time(path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        return [replace(info, modified_ms=1) for info in listed(path, start_after=start_after)]

    looked_up = harness.store.head
    monkeypatch.setattr(harness.store, "list_directory", at_one_time)
    monkeypatch.setattr(harness.store, "head", lambda path: replace(looked_up(path), modified_ms=1))
    result = harness.run(known_ago_ms=HOURS_AGO_MS)
    assert isinstance(result, Unknown)
    assert not may_discard_files(result)


def test_old_snapshot_of_a_quiet_table_commits(harness: Harness) -> None:
    harness.store.inner.put(LAST_CHECKPOINT_PATH, b'{"version":0,"size":1}')
    result = harness.run(known_ago_ms=2 * 3_600_000)
    assert isinstance(result, Committed)


def test_reading_the_tail_counts_as_fresh_knowledge(harness: Harness) -> None:
    harness.other_commits(1)
    harness.store.inner.put(LAST_CHECKPOINT_PATH, b'{"version":1,"size":1}')
    result = harness.run(known_ago_ms=2 * 3_600_000)
    assert isinstance(result, Committed)
    assert result.version == 2
