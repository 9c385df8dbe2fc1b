"""The commit loop against every answer that a store can give."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from delta_core.actions import CommitInfo
from delta_core.actions.json_codec import encode_commit
from delta_core.clock import ManualClock
from delta_core.errors import (
    CommitRejectedError,
    CommitStateUnknownError,
    ConcurrentAppendError,
    ConcurrentWriteError,
    MaxCommitAttemptsError,
    StaleCommitError,
)
from delta_core.log.log_path import LAST_CHECKPOINT_PATH, commit_path
from delta_core.storage.local import LocalLogStore
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
from delta_core.transaction.observer import NULL_OBSERVER
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

    def other_commits(self, version: int) -> None:
        self.store.inner.put_if_absent(commit_path(version), body(f"other-{version}", version))

    def run(self, *, known_ago_ms: int = 0, **overrides: Any) -> CommitResult:
        def examine(winner: WinningCommit) -> Conflict | None:
            self.examined.append(winner.version)
            return self.refusal

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
            ),
            clock=self.clock,
            random=Random(7),
            observer=NULL_OBSERVER,
        ).run()

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


def test_commit_moves_past_another_writer_after_checking_each_version(harness: Harness) -> None:
    for version in (1, 2, 3):
        harness.other_commits(version)
    result = harness.run()
    assert isinstance(result, Committed)
    assert (result.version, result.attempts) == (4, 2)
    assert harness.examined == [1, 2, 3]
    assert json.loads(harness.store.put_bodies[-1])["commitInfo"]["readVersion"] == 3


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


def test_winner_whose_bytes_are_damaged_is_a_conflict(harness: Harness) -> None:
    harness.store.inner.put_if_absent(commit_path(1), b'{"commitInfo":')
    result = harness.run()
    assert isinstance(result, Conflict)
    assert result.rule == "unreadable_winner"
    assert isinstance(result.error, ConcurrentWriteError)


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


def test_refusal_after_an_unclear_attempt_is_not_definite(harness: Harness) -> None:
    harness.store.puts = [PutFault.DROP_REQUEST, PutFault.DENIED]
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


def test_write_below_a_checkpoint_is_reported_as_lost(harness: Harness) -> None:
    harness.store.inner.put(LAST_CHECKPOINT_PATH, b'{"version":7,"size":1}')
    result = harness.run(known_ago_ms=2 * 3_600_000)
    assert isinstance(result, Rejected)
    assert "checkpoint of version 7" in result.error.cause


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
