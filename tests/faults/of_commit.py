"""Faults of commits: who has won a version, what a winning commit forbids, and what a rebase follows up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.faults.fault import Fault, returns

_COMMITTER = "delta_core.transaction.committer:Committer"
_RULES = "delta_core.transaction.conflict_checker"
_IDEMPOTENCY = "delta_core.transaction.commit_result"

_LOOP_TESTS = "tests/unit/transaction/test_committer.py"
_RULE_TESTS = "tests/unit/transaction/test_conflict_rules.py"
_KEY_TESTS = "tests/unit/transaction/test_transaction.py::TestIdempotency"


def _any_commit_is_ours(original: Callable[..., Any]) -> Callable[..., Any]:
    def owner(self: Any, version: int, data: bytes) -> Any:
        found = original(self, version, data)
        return self._recovered(version, data) if type(found).__name__ == "_Lost" else found

    return owner


def _unclear_is_refused(original: Callable[..., Any]) -> Callable[..., Any]:
    def put(self: Any, version: int, data: bytes) -> None:
        from delta_core.errors import AmbiguousWriteError, WriteRefusedError

        try:
            original(self, version, data)
        except AmbiguousWriteError as error:
            raise WriteRefusedError(error.problem) from error

    return put


def _first_winner_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    def examine_to_tail(self: Any, known: int) -> Any:
        request = self.request
        self.request = replace(request, examine=lambda winner: None)
        try:
            return original(self, known)
        finally:
            self.request = request

    return examine_to_tail


def _unknown_is_failed(original: Callable[..., Any]) -> Callable[..., Any]:
    def may_discard_files(result: Any) -> bool:
        return type(result).__name__ == "Unknown" or bool(original(result))

    return may_discard_files


def _stays_as_it_was(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, winner: self


def _key_of_the_try(original: Callable[..., Any]) -> Callable[..., Any]:
    def idempotency_key(task: Any, table: Any, **given: Any) -> Any:
        return original(replace(task, run_id=f"{task.run_id} {task.try_number}"), table, **given)

    return idempotency_key


def _without_rule(rule: str, guarantee: str) -> Fault:
    return Fault(
        name=f"no conflict rule {rule}",
        guarantee=guarantee,
        target=f"{_RULES}:{rule}",
        mutate=returns(None),
        killer=f"{_RULE_TESTS}::test_pair_of_operations",
    )


FAULTS = [
    Fault(
        name="any winning commit is taken for the own one",
        guarantee="the txnId that is read back decides who has won a version",
        target=f"{_COMMITTER}._owner",
        mutate=_any_commit_is_ours,
        killer=f"{_LOOP_TESTS}::test_commit_moves_past_another_writer_after_checking_each_version",
    ),
    Fault(
        name="an unclear answer is a refusal",
        guarantee="an unclear answer is never taken for a refusal: the commit may have landed",
        target=f"{_COMMITTER}._put",
        mutate=_unclear_is_refused,
        killer=f"{_LOOP_TESTS}::test_lost_answers_end_in_exactly_one_commit",
    ),
    Fault(
        name="only the first winning commit is checked",
        guarantee="every winning commit up to the tail is checked for conflicts",
        target=f"{_COMMITTER}._examine_to_tail",
        mutate=_first_winner_alone,
        killer=f"{_LOOP_TESTS}::test_commit_moves_past_another_writer_after_checking_each_version",
    ),
    _without_rule("protocol_changed", "no commit follows a change of the protocol that it did not see"),
    _without_rule("metadata_changed", "no commit follows a change of the metadata that matters to it"),
    _without_rule("concurrent_append", "rows added to what was read are a conflict"),
    _without_rule("delete_read", "the removal of a file that was read is a conflict"),
    _without_rule("delete_delete", "one file is removed by one commit"),
    _without_rule("same_application", "two commits of one application are a conflict"),
    Fault(
        name="the idempotency key is not looked up before the work",
        guarantee="a job that is run again finds that its work was done",
        target=f"{_IDEMPOTENCY}:already_applied",
        mutate=returns(None),
        killer=f"{_KEY_TESTS}::test_key_is_written_and_then_found",
    ),
    Fault(
        name="the idempotency key is not looked up at the rebase",
        guarantee="a twin that wins the race is found by its idempotency key",
        target=f"{_IDEMPOTENCY}:covering",
        mutate=returns(None),
        killer=f"{_KEY_TESTS}::test_twin_that_wins_the_race_is_found_at_the_rebase",
    ),
    Fault(
        name="the idempotency key is made of the try",
        guarantee="every try of a task has one idempotency key",
        target="delta_airflow.operators.provenance:idempotency_key",
        mutate=_key_of_the_try,
        killer="tests/unit/jobs/test_task_key.py::test_every_try_of_a_task_has_one_key",
    ),
    Fault(
        name="an unknown outcome deletes the data files",
        guarantee="files that a commit in the log may name are kept",
        target="delta_core.transaction.commit_result:may_discard_files",
        mutate=_unknown_is_failed,
        killer="tests/concurrency/test_ambiguous_writes.py::test_unknown_outcome_keeps_the_files",
    ),
    Fault(
        name="in-commit timestamps do not follow the winning commit",
        guarantee="the time in a commit is later than that of the commit before it",
        target="delta_core.transaction.in_commit_time:InCommitTime.after",
        mutate=_stays_as_it_was,
        killer="tests/unit/transaction/test_in_commit_time.py"
        "::test_whoever_comes_second_counts_on_from_the_winners",
    ),
    Fault(
        name="the row-id high-water mark does not follow the winning commit",
        guarantee="no row id is given twice",
        target="delta_core.transaction.row_ids:RowIds.after",
        mutate=_stays_as_it_was,
        killer="tests/unit/transaction/test_row_ids.py::test_whoever_comes_second_counts_on",
    ),
    Fault(
        name="a takeover commits no fence",
        guarantee="a lease's former holder commits nothing after the next one has begun",
        target="delta_core.jobs.lease:_commit_fence",
        mutate=returns(0),
        killer="tests/unit/jobs/test_job_lease.py"
        "::test_a_zombie_is_refused_while_the_next_holder_still_works",
    ),
]
