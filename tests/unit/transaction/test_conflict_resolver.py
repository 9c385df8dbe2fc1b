"""A resolver settles what the rules forbid, winner by winner; without it, or its word, conflicts stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_core.actions import Action, AddFile, CommitInfo, RemoveFile, SetTransaction
from delta_core.errors import CommitError
from delta_core.expressions.ast import TRUE
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import CommitResult, Committed, Conflict
from delta_core.transaction.conflict_checker import RuleViolation
from delta_core.transaction.conflict_resolver import Resolution
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.transaction import Transaction
from delta_core.transaction.winning_commit import WinningCommit
from tests.support.log_builder import LogBuilder, add, remove


class TakesOver:
    """Removes what the winner made of the file, in place of the file."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def resolve(
        self,
        violation: RuleViolation,
        winner: WinningCommit,
        actions: Sequence[Action],
        *,
        transaction: CommitFootprint,
    ) -> Resolution | None:
        self.asked.append((violation.rule, winner.version))
        if violation.rule == "same_application":
            return Resolution(actions=actions, rest=replace(winner, transactions=()))
        if not winner.adds:
            return None
        kept = [action for action in actions if not isinstance(action, RemoveFile)]
        over = [remove(made.path, partition_values=made.partition_values) for made in winner.adds]
        return Resolution(actions=[*kept, *over], rest=replace(winner, adds=(), removes=()))


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path).create(add("f0"))


def _commit(log: LogBuilder, snapshot: Snapshot, resolver: TakesOver | None) -> CommitResult:
    transaction = Transaction.begin(snapshot, operation="DELETE", clock=log.clock, resolver=resolver)
    return transaction.add(remove("f0", partition_values={"p": "1"}), add("g0")).commit()


def _paths(log: LogBuilder) -> set[str]:
    files = Snapshot.load(log.store, clock=log.clock).files
    return set(files.to_table(columns=["path"]).column("path").to_pylist())


def test_what_it_gives_is_committed_after_each_winner(log: LogBuilder) -> None:
    snapshot = Snapshot.load(log.store, clock=log.clock)
    log.commit(remove("f0"), add("f1"))
    log.commit(remove("f1"), add("f2"))
    resolver = TakesOver()

    result = _commit(log, snapshot, resolver)

    assert isinstance(result, Committed)
    assert result.version == 3
    # The second winner was held against what the first one had made of the transaction.
    assert resolver.asked == [("delete_delete", 1), ("delete_delete", 2)]
    assert _paths(log) == {"g0"}


def test_without_its_word_the_conflict_stands(log: LogBuilder) -> None:
    snapshot = Snapshot.load(log.store, clock=log.clock)
    log.commit(remove("f0"))
    resolver = TakesOver()

    result = _commit(log, snapshot, resolver)

    assert isinstance(result, Conflict)
    assert (result.rule, result.winner) == ("delete_delete", 1)
    assert resolver.asked == [("delete_delete", 1)]
    assert _paths(log) == set()


def test_without_a_resolver_the_conflict_stands(log: LogBuilder) -> None:
    snapshot = Snapshot.load(log.store, clock=log.clock)
    log.commit(remove("f0"), add("f1"))
    assert isinstance(_commit(log, snapshot, None), Conflict)
    assert _paths(log) == {"f1"}


def test_contradictions_that_it_gives_are_not_committed(log: LogBuilder) -> None:
    class Doubles(TakesOver):
        def resolve(
            self,
            violation: RuleViolation,
            winner: WinningCommit,
            actions: Sequence[Action],
            *,
            transaction: CommitFootprint,
        ) -> Resolution | None:
            twice = [*actions, *(action for action in actions if isinstance(action, AddFile))]
            return Resolution(actions=twice, rest=winner)

    snapshot = Snapshot.load(log.store, clock=log.clock)
    log.commit(remove("f0"), add("f1"))
    with pytest.raises(CommitError, match="same file twice"):
        _commit(log, snapshot, Doubles())
    assert _paths(log) == {"f1"}


@pytest.mark.parametrize("resolved_before", [False, True])
def test_rows_that_get_along_do_not_settle_the_order_of_three(log: LogBuilder, resolved_before: bool) -> None:
    """It is before the append that it did not see, and that is before whoever may have read it."""
    snapshot = Snapshot.load(log.store, clock=log.clock)
    file = "f0"
    if resolved_before:
        log.commit(remove("f0"), add("f1"))
        file = "f1"
    log.commit(CommitInfo(is_blind_append=True), add("appended"))
    log.commit(remove(file), add("f2"))
    resolver = TakesOver()

    transaction = Transaction.begin(snapshot, operation="DELETE", clock=log.clock, resolver=resolver)
    transaction.read_predicate(TRUE)
    result = transaction.add(remove("f0", partition_values={"p": "1"}), add("g0")).commit()

    assert isinstance(result, Conflict)
    assert result.winner == 2 + resolved_before
    assert {version for _, version in resolver.asked} == ({1} if resolved_before else set())
    assert _paths(log) == {"appended", "f2"}


def test_what_is_settled_by_one_rule_is_asked_of_the_others(log: LogBuilder) -> None:
    snapshot = Snapshot.load(log.store, clock=log.clock)
    log.commit(remove("f0"), add("f1"), SetTransaction(app_id="job", version=1))
    resolver = TakesOver()

    key = CommitProperties(txn=SetTransaction(app_id="job", version=2))
    transaction = Transaction.begin(
        snapshot, operation="DELETE", clock=log.clock, resolver=resolver, properties=key
    )
    result = transaction.add(remove("f0", partition_values={"p": "1"}), add("g0")).commit()

    assert resolver.asked == [("delete_delete", 1), ("same_application", 1)]
    assert isinstance(result, Committed), "this one settles whatever it is asked"


def test_what_is_not_settled_is_asked_again_and_stands(log: LogBuilder) -> None:
    """Whoever settles one file by a rule says nothing of another file that the same rule is about."""

    class SettlesNothing(TakesOver):
        def resolve(
            self,
            violation: RuleViolation,
            winner: WinningCommit,
            actions: Sequence[Action],
            *,
            transaction: CommitFootprint,
        ) -> Resolution | None:
            self.asked.append((violation.rule, winner.version))
            return Resolution(actions=actions, rest=winner)

    snapshot = Snapshot.load(log.store, clock=log.clock)
    log.commit(remove("f0"), add("f1"))
    resolver = SettlesNothing()
    result = _commit(log, snapshot, resolver)
    assert isinstance(result, Conflict)
    assert resolver.asked == [("delete_delete", 1)]


def test_counts_that_change_are_committed(log: LogBuilder) -> None:
    class Recounts(TakesOver):
        def resolve(
            self,
            violation: RuleViolation,
            winner: WinningCommit,
            actions: Sequence[Action],
            *,
            transaction: CommitFootprint,
        ) -> Resolution | None:
            found = super().resolve(violation, winner, actions, transaction=transaction)
            return None if found is None else replace(found, counts={"numRemovedFiles": -2, "other": 1})

    snapshot = Snapshot.load(log.store, clock=log.clock)
    log.commit(remove("f0"), add("f1"))
    transaction = Transaction.begin(snapshot, operation="DELETE", clock=log.clock, resolver=Recounts())
    transaction.set_metrics({"numRemovedFiles": 5})
    result = transaction.add(remove("f0", partition_values={"p": "1"})).commit()
    assert isinstance(result, Committed)
    assert dict(result.operation_metrics) == {"numRemovedFiles": "3"}
