"""The commit loop against every answer that a store can give."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from delta_core.actions import CommitInfo
from delta_core.actions.json_codec import encode_commit
from delta_core.clock import ManualClock
from delta_core.errors import (
    CommitRejectedError,
    CommitStateUnknownError,
    ConcurrentAppendError,
    MaxCommitAttemptsError,
    ObjectNotFoundError,
    StaleCommitError,
    StorageError,
)
from delta_core.log.log_path import LAST_CHECKPOINT_PATH, checkpoint_path, commit_path
from delta_core.observability import (
    COMMIT_CONFLICT_TOTAL,
    COMMIT_REBASE_TOTAL,
    COMMIT_RECOVERED_TOTAL,
    COMMIT_SPURIOUS_EXISTS_TOTAL,
    COMMIT_TOTAL,
    COMMIT_UNKNOWN_TOTAL,
    METRICS,
)
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from delta_core.transaction.commit_result import (
    CommitResult,
    Committed,
    Conflict,
    Rejected,
    Unknown,
    may_discard_files,
    raise_for_result,
)
from delta_core.transaction.committer import READ_BACK_TRIES, CommitRequest, Committer
from delta_core.transaction.observer import NULL_OBSERVER, CommitPhase
from delta_core.transaction.stale_writer_guard import StaleWriterGuard
from delta_core.transaction.winning_commit import WinningCommit
from tests.support.faulty_store import FaultyStore, PutFault

DAY_MS = 86_400_000


def body(txn_id: str, version: int) -> bytes:
    return encode_commit([CommitInfo(operation="TEST", txn_id=txn_id, read_version=version - 1)])


class Harness:
    """One committer over a store with faults; version 0 exists."""

    def __init__(self, root: Path) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.store = FaultyStore(LocalLogStore(root, clock=self.clock))
        self.store.inner.put_if_absent(commit_path(0), body("creator", 0))
        self.examined: list[int] = []
        self.refusal: Conflict | None = None
        self.refusals: dict[int, Conflict] = {}
        self.observer: Any = NULL_OBSERVER

    def other_commits(self, version: int) -> None:
        self.store.inner.put_if_absent(commit_path(version), body(f"other-{version}", version))

    def run(self, **overrides: Any) -> CommitResult:
        return self.committer(**overrides).run()

    def committer(
        self, *, known_ago_ms: int = 0, version_file: ObjectInfo | None = None, **overrides: Any
    ) -> Committer:
        def examine(winner: WinningCommit) -> Conflict | None:
            self.examined.append(winner.version)
            return self.refusals.get(winner.version, self.refusal)

        settings: dict[str, Any] = {
            "txn_id": "mine",
            "read_version": 0,
            "render": lambda version: body("mine", version),
            "examine": examine,
            "max_attempts": 50,
            "deadline_seconds": 600.0,
        }
        return Committer(
            store=self.store,
            request=CommitRequest(**{**settings, **overrides}),
            guard=StaleWriterGuard(
                store=self.store,
                clock=self.clock,
                known_at_ms=self.clock.now_ms() - known_ago_ms,
                log_retention_ms=30 * DAY_MS,
                version_file=version_file,
            ),
            clock=self.clock,
            random=Random(7),
            observer=self.observer,
        )

    def versions_of_mine(self) -> list[int]:
        found = []
        for info in self.store.inner.list_directory("_delta_log"):
            if info.path.endswith(".json"):
                first = json.loads(self.store.inner.read(info.path).splitlines()[0])
                if first["commitInfo"].get("txnId") == "mine":
                    found.append(int(info.path.removeprefix("_delta_log/").removesuffix(".json")))
        return found


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def test_commit_that_nobody_disturbs_is_one_request(harness: Harness) -> None:
    result = harness.run()
    assert result == Committed(version=1, recovered=False, attempts=1, txn_id="mine")
    assert (harness.store.put_paths, harness.store.read_paths) == ([commit_path(1)], [])


@pytest.mark.parametrize(
    ("faults", "recovered", "attempts"),
    [
        ([PutFault.DROP_RESPONSE], True, 1),
        ([PutFault.EXISTS_BUT_MINE], True, 1),
        ([PutFault.DROP_REQUEST], False, 2),
        ([PutFault.CONFLICT_409], False, 2),
        ([PutFault.CONFLICT_409, PutFault.DROP_REQUEST, PutFault.DROP_RESPONSE], True, 3),
        ([PutFault.LANDS_LATE], True, 2),
        ([PutFault.DROP_REQUEST] * 12, False, 13),
        ([PutFault.DROP_RESPONSE, PutFault.DENIED], True, 1),
    ],
    ids=lambda value: "+".join(f.name for f in value) if isinstance(value, list) else str(value),
)
def test_lost_answers_end_in_exactly_one_commit(
    harness: Harness, faults: list[PutFault], recovered: bool, attempts: int
) -> None:
    harness.store.puts = list(faults)
    result = harness.run()
    assert result == Committed(version=1, recovered=recovered, attempts=attempts, txn_id="mine")
    assert harness.versions_of_mine() == [1]
    assert set(harness.store.put_paths) == {commit_path(1)}
    assert len(set(harness.store.put_bodies)) == 1, "a version is retried with the same bytes"


def test_a_commit_that_the_store_gives_back_in_other_bytes_is_ours_by_its_id(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = harness.store.read
    monkeypatch.setattr(harness.store, "read", lambda path: real(path).rstrip() + b"\n\n")
    harness.store.puts = [PutFault.DROP_RESPONSE]
    assert harness.run() == Committed(version=1, recovered=True, attempts=1, txn_id="mine")
    assert harness.versions_of_mine() == [1]


def test_commit_moves_past_another_writer_after_checking_each_version(harness: Harness) -> None:
    for version in (1, 2, 3):
        harness.other_commits(version)
    result = harness.run()
    assert isinstance(result, Committed)
    assert (result.version, result.attempts) == (4, 2)
    assert harness.examined == [1, 2, 3]
    assert json.loads(harness.store.put_bodies[-1])["commitInfo"]["readVersion"] == 3


class Phases:
    """Notes what an observer is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        self.seen.append((phase.value, version))


def test_an_observer_sees_every_phase(harness: Harness) -> None:
    for version in (1, 2):
        harness.other_commits(version)
    harness.store.puts = [PutFault.NONE, PutFault.DROP_REQUEST]
    harness.observer = Phases()
    assert isinstance(harness.run(), Committed)
    attempt = [("before_put", 3), ("after_put", 3)]
    lost = [("before_put", 1), ("after_put", 1), ("lost", 1), ("rebased", 3)]
    assert harness.observer.seen == [*lost, *attempt, *attempt, ("committed", 3)]


@pytest.mark.parametrize(
    ("faults", "others", "counted"),
    [
        ([], 0, {COMMIT_TOTAL: 1}),
        ([PutFault.DROP_RESPONSE], 0, {COMMIT_TOTAL: 1, COMMIT_RECOVERED_TOTAL: 1}),
        ([PutFault.CONFLICT_409], 0, {COMMIT_TOTAL: 1, COMMIT_SPURIOUS_EXISTS_TOTAL: 1}),
        ([], 2, {COMMIT_TOTAL: 1, COMMIT_REBASE_TOTAL: 1}),
        ([PutFault.DROP_REQUEST, PutFault.DENIED], 0, {COMMIT_UNKNOWN_TOTAL: 1}),
        ([PutFault.DENIED], 0, {}),
    ],
)
def test_outcomes_are_counted(
    harness: Harness, faults: list[PutFault], others: int, counted: dict[str, int]
) -> None:
    METRICS.reset()
    for version in range(1, others + 1):
        harness.other_commits(version)
    harness.store.puts = list(faults)
    harness.run()
    assert {name: value for name, value in METRICS.snapshot().items() if value} == counted


def test_a_conflict_is_counted(harness: Harness) -> None:
    METRICS.reset()
    harness.other_commits(1)
    harness.refusal = Conflict(winner=1, rule="concurrent_append", error=ConcurrentAppendError("no"))
    harness.run()
    assert {name: value for name, value in METRICS.snapshot().items() if value} == {COMMIT_CONFLICT_TOTAL: 1}


def test_a_conflict_further_up_ends_the_commit(harness: Harness) -> None:
    for version in (1, 2, 3):
        harness.other_commits(version)
    refusal = Conflict(winner=2, rule="concurrent_append", error=ConcurrentAppendError("no"))
    harness.refusals[2] = refusal
    assert harness.run() == refusal
    assert harness.examined == [1, 2]


@pytest.mark.parametrize("damage", [b"{", None])
def test_a_commit_further_up_that_cannot_be_examined_is_a_conflict(
    harness: Harness, damage: bytes | None
) -> None:
    harness.other_commits(1)
    harness.store.inner.put(commit_path(2), damage or body("other", 2))
    if damage is None:
        real = harness.store.read

        def read(path: str) -> bytes:
            if path == commit_path(2):
                raise StorageError("503")
            return real(path)

        harness.store.read = read  # type: ignore[method-assign]
    result = harness.run()
    assert isinstance(result, Conflict)
    assert (result.rule, result.winner, result.attempts) == ("unreadable_winner", 2, 1)


def test_a_race_that_is_lost_at_the_deadline_is_given_up(harness: Harness) -> None:
    def others_are_slow_and_first(path: str) -> None:
        harness.clock.advance(40)
        harness.store.inner.put_if_absent(path, body("other", 1))

    harness.store.before_put = others_are_slow_and_first
    result = harness.run(deadline_seconds=60.0)
    assert isinstance(result, Conflict)
    assert (result.rule, result.winner, result.attempts) == ("attempts_exhausted", 2, 2)


def test_conflict_stops_at_the_first_version_that_conflicts(harness: Harness) -> None:
    harness.other_commits(1)
    harness.refusal = Conflict(winner=1, rule="concurrent_append", error=ConcurrentAppendError("no"))
    result = harness.run()
    assert isinstance(result, Conflict)
    assert (result.winner, result.rule) == (1, "concurrent_append")
    assert harness.versions_of_mine() == []
    assert may_discard_files(result)


def test_ambiguous_write_that_another_writer_won_is_a_plain_loss(harness: Harness) -> None:
    harness.store.puts = [PutFault.DROP_REQUEST]
    harness.store.before_put = lambda path: harness.other_commits(1) if not harness.store.put_paths else None
    result = harness.run()
    assert isinstance(result, Committed)
    assert (result.version, result.recovered) == (2, False)
    assert harness.versions_of_mine() == [2]


@pytest.mark.parametrize("found", [b"", b'{"commitInfo":', b"\xff\xfe"])
def test_a_version_that_cannot_be_understood_may_be_ours(harness: Harness, found: bytes) -> None:
    """Whose it is has not been read: nothing may be deleted."""
    harness.store.inner.put_if_absent(commit_path(1), found)
    result = harness.run()
    assert isinstance(result, Unknown)
    assert not may_discard_files(result)
    assert harness.store.read_paths.count(commit_path(1)) == READ_BACK_TRIES


@pytest.mark.parametrize("cut", [0, 20, -1])
def test_our_own_commit_that_is_read_back_cut_is_read_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    harness.store.puts = [PutFault.DROP_RESPONSE]
    read, halves = harness.store.read, [cut, cut]

    def read_half(path: str) -> bytes:
        data = read(path)
        return data[: halves.pop()] if halves else data

    monkeypatch.setattr(harness.store, "read", read_half)
    assert harness.run() == Committed(version=1, recovered=True, attempts=1, txn_id="mine")


def test_what_is_kept_of_our_own_commit_is_what_we_wrote(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line tells whose it is; the others may have been lost on the way."""
    data = body("mine", 1) + b'{"txn":{"appId":"a","version":1}}\n'
    harness.store.puts = [PutFault.DROP_RESPONSE]
    read = harness.store.read
    monkeypatch.setattr(harness.store, "read", lambda path: read(path).splitlines(keepends=True)[0])
    committer = harness.committer(render=lambda version: data)
    result = committer.run()
    assert isinstance(result, Committed)
    assert [commit.data for commit in committer.tail] == [data]


@pytest.mark.parametrize("error", [RuntimeError("no credentials"), OSError("broken pipe")])
def test_errors_that_a_store_does_not_document_tell_nothing(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    put = harness.store.put_if_absent

    def lands(path: str, data: bytes) -> None:
        put(path, data)
        raise error

    def fails(path: str) -> bytes:
        raise error

    monkeypatch.setattr(harness.store, "put_if_absent", lands)
    with monkeypatch.context() as patched:
        patched.setattr(harness.store, "read", fails)
        assert isinstance(harness.run(), Unknown)
    (harness.store.inner.root / commit_path(1)).unlink()
    assert harness.run() == Committed(version=1, recovered=True, attempts=1, txn_id="mine")


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


def test_a_slow_write_looks_for_the_version_before_and_no_further(harness: Harness) -> None:
    class Slow:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.BEFORE_PUT:
                harness.clock.advance(60)

    harness.observer = Slow()
    result = harness.run(version_file=harness.store.inner.head(commit_path(0)))
    assert result == Committed(version=1, recovered=False, attempts=1, txn_id="mine")
    assert harness.store.listed == []


def test_reads_that_fail_for_a_while_are_repeated(harness: Harness) -> None:
    harness.store.puts = [PutFault.DROP_RESPONSE]
    harness.store.failing_reads = READ_BACK_TRIES - 1
    assert harness.run() == Committed(version=1, recovered=True, attempts=1, txn_id="mine")


@pytest.mark.parametrize("fault", [PutFault.DROP_RESPONSE, PutFault.DROP_REQUEST, PutFault.EXISTS_BUT_MINE])
def test_reads_that_keep_failing_leave_the_outcome_unknown(harness: Harness, fault: PutFault) -> None:
    harness.store.puts = [fault]
    harness.store.failing_reads = READ_BACK_TRIES
    result = harness.run()
    assert isinstance(result, Unknown)
    assert (result.version, result.txn_id) == (1, "mine")
    assert not may_discard_files(result)
    with pytest.raises(CommitStateUnknownError, match="txnId mine"):
        raise_for_result(result)


def test_refusal_is_definite(harness: Harness) -> None:
    harness.store.puts = [PutFault.DENIED]
    result = harness.run()
    assert isinstance(result, Rejected)
    assert isinstance(result.error, CommitRejectedError)
    assert may_discard_files(result)


@pytest.mark.parametrize("unclear", [PutFault.DROP_REQUEST, PutFault.CONFLICT_409])
def test_refusal_after_an_unclear_attempt_is_not_definite(harness: Harness, unclear: PutFault) -> None:
    harness.store.puts = [unclear, PutFault.DENIED]
    result = harness.run()
    assert isinstance(result, Unknown)
    assert not may_discard_files(result)


def test_ambiguity_sticks_when_the_version_moves_on(harness: Harness) -> None:
    harness.store.puts = [PutFault.DROP_REQUEST, PutFault.NONE, PutFault.DENIED]

    def meanwhile(path: str) -> None:
        if len(harness.store.put_paths) == 1:
            harness.other_commits(1)

    harness.store.before_put = meanwhile
    result = harness.run()
    assert isinstance(result, Unknown)
    assert result.version == 2


def test_store_that_never_answers_ends_at_the_deadline_as_unknown(harness: Harness) -> None:
    harness.store.puts = [PutFault.DROP_REQUEST] * 10_000
    started = harness.clock.monotonic_seconds()
    result = harness.run(deadline_seconds=60.0)
    assert isinstance(result, Unknown)
    assert 60 <= harness.clock.monotonic_seconds() - started < 70


def test_a_first_attempt_is_made_however_late_it_is(harness: Harness) -> None:
    assert isinstance(harness.run(deadline_seconds=0.0), Committed)


def test_losing_every_race_ends_as_a_conflict(harness: Harness) -> None:
    harness.store.before_put = lambda path: harness.store.inner.put_if_absent(path, body("other", 1))
    result = harness.run(max_attempts=5)
    assert isinstance(result, Conflict)
    assert isinstance(result.error, MaxCommitAttemptsError)
    assert (result.rule, result.winner, result.attempts) == ("attempts_exhausted", 5, 5)
    assert harness.versions_of_mine() == []


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
    assert "was in the log before" in result.error.cause
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

    monkeypatch.setattr(harness.store, "list_directory", at_one_time)
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
