"""The commit loop against every answer that a store can give."""

from __future__ import annotations

import json

import pytest

from delta_core.errors import (
    CommitRejectedError,
    CommitStateUnknownError,
    ConcurrentAppendError,
    MaxCommitAttemptsError,
    StorageError,
)
from delta_core.log.log_path import commit_path
from delta_core.observability import (
    COMMIT_CONFLICT_TOTAL,
    COMMIT_REBASE_TOTAL,
    COMMIT_RECOVERED_TOTAL,
    COMMIT_SPURIOUS_EXISTS_TOTAL,
    COMMIT_TOTAL,
    COMMIT_UNKNOWN_TOTAL,
    METRICS,
)
from delta_core.transaction.commit_result import (
    Committed,
    Conflict,
    Rejected,
    Unknown,
    may_discard_files,
    raise_for_result,
)
from delta_core.transaction.committer import READ_BACK_TRIES
from delta_core.transaction.observer import CommitPhase
from tests.support.faulty_store import PutFault
from tests.unit.transaction.commit_harness import Harness, body


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


def test_what_reads_back_and_is_not_durable_is_unknown(harness: Harness) -> None:
    """A flush that failed leaves the bytes in a cache, where they read as if they were safe."""
    harness.store.puts = [PutFault.DROP_RESPONSE]
    harness.store.unflushed = True
    result = harness.run()
    assert isinstance(result, Unknown)
    assert "may not be durable" in result.error.cause
    assert not may_discard_files(result)


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
