"""How far WriteSerializable reorders blind appends: to a serial order, of two transactions and of three.

An append may be ordered after the transaction that did not see it, but not when a third transaction may have
read the append and what the transaction changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest

from delta_core.dml.write import write_deltalake
from delta_core.errors import ConcurrentAppendError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_result import Committed, Conflict
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.transaction import Transaction
from tests.concurrency.matrix.layouts import Handle, rows, template
from tests.concurrency.matrix.memory_store import MemoryStore
from tests.concurrency.matrix.row_changes import RowChange, commit_row_change
from tests.concurrency.matrix.state import Row, TableState
from tests.support.log_builder import add


def _in_range(row: Row) -> bool:
    return row[1] == "p0" and row[0] <= 4


UPDATE = RowChange(
    operation="UPDATE",
    predicate="p = 'p0' AND id <= 4",
    change=lambda row: (*row[:2], "updated") if _in_range(row) else row,
)


def _summary(seen: Iterable[Row]) -> Iterable[Row]:
    return (
        (50, "p1", " ".join(f"{number} {value}" for number, _, value in sorted(filter(_in_range, seen)))),
    )


SUMMARIZE = RowChange(operation="MERGE", predicate="p = 'p0' AND id <= 4", inserted=_summary)
"""INSERT INTO t SELECT ... FROM t: reads p0, writes p1."""

APPENDED: Row = (3, "p0", "appended")


ELSEWHERE = RowChange(operation="DELETE", predicate="p = 'p1' AND id <= 2", change=lambda row: None)


def _append(store: MemoryStore) -> None:
    number, partition, value = APPENDED
    write_deltalake(
        Handle(Snapshot.load(store)), rows(number, partition=partition, value=value), mode="append"
    )


def _serial_states(start: TableState, *, steps: str) -> set[TableState]:
    states = set()
    for order in permutations(steps):
        state = start
        for step in order:
            change = UPDATE if step == "u" else SUMMARIZE
            state = (
                state.plus(APPENDED)
                if step == "a"
                else state.mapped(change.change, *change.inserted(list(state.rows)))
            )
        states.add(state)
    return states


def test_an_update_is_ordered_before_the_append_that_it_did_not_see() -> None:
    start = template(IsolationLevel.WRITE_SERIALIZABLE)
    store = start.store.fork()
    stale = Snapshot.load(store)
    _append(store)
    commit_row_change(stale, UPDATE)
    state = TableState.of(Snapshot.load(store))
    assert APPENDED in state.rows
    assert state in _serial_states(start.state, steps="au")


def test_an_append_that_another_has_read_is_not_reordered() -> None:
    start = template(IsolationLevel.WRITE_SERIALIZABLE)
    store = start.store.fork()
    stale = Snapshot.load(store)
    _append(store)
    commit_row_change(Snapshot.load(store), SUMMARIZE)
    with pytest.raises(ConcurrentAppendError, match="may have read them"):
        commit_row_change(stale, UPDATE)
    # Run again it sees the append.
    commit_row_change(Snapshot.load(store), UPDATE)
    assert TableState.of(Snapshot.load(store)) in _serial_states(start.state, steps="aus")


def test_an_append_that_came_after_the_reader_is_reordered() -> None:
    start = template(IsolationLevel.WRITE_SERIALIZABLE)
    store = start.store.fork()
    stale = Snapshot.load(store)
    commit_row_change(Snapshot.load(store), ELSEWHERE)
    _append(store)
    commit_row_change(stale, UPDATE)
    state = TableState.of(Snapshot.load(store))
    assert APPENDED in state.rows
    assert (3, "p0", "updated") not in state.rows


def test_a_rearrangement_after_the_append_has_read_nothing() -> None:
    start = template(IsolationLevel.WRITE_SERIALIZABLE)
    store = start.store.fork()
    stale = Snapshot.load(store)
    _append(store)
    current = Snapshot.load(store)
    apply_rewrite(
        current, plan_compaction(current, predicate="p = 'p1'"), run=Run(executor=InlineExecutor(1))
    )
    commit_row_change(stale, UPDATE)
    assert APPENDED in TableState.of(Snapshot.load(store)).rows


def test_serializable_refuses_the_update() -> None:
    store = template(IsolationLevel.SERIALIZABLE).store.fork()
    stale = Snapshot.load(store)
    _append(store)
    with pytest.raises(ConcurrentAppendError):
        commit_row_change(stale, UPDATE)


@pytest.mark.parametrize("level", [IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE])
def test_rows_that_a_rearrangement_moved_are_still_those_that_were_read(level: IsolationLevel) -> None:
    """Compacted by one and deleted by the next: the files that were read by name are no longer there."""
    store = template(level).store.fork()
    stale = Snapshot.load(store)
    read = stale.files.to_table(["path"]).column("path").to_pylist()
    current = Snapshot.load(store)
    plan = plan_compaction(current, predicate="p = 'p0'")
    apply_rewrite(current, plan, run=Run(executor=InlineExecutor(1)))
    commit_row_change(
        Snapshot.load(store), RowChange(operation="DELETE", predicate="p = 'p0'", change=lambda row: None)
    )

    transaction = Transaction.begin(stale, operation="MERGE").read_files(read)
    result = transaction.add(add("inserted", partition_values={"p": "p1"})).commit()
    assert isinstance(result, Conflict)
    assert result.rule == "delete_read"


def test_a_rearrangement_alone_takes_no_row_away() -> None:
    store = template(IsolationLevel.SERIALIZABLE).store.fork()
    stale = Snapshot.load(store)
    read = stale.files.to_table(["path"]).column("path").to_pylist()
    current = Snapshot.load(store)
    apply_rewrite(
        current, plan_compaction(current, predicate="p = 'p0'"), run=Run(executor=InlineExecutor(1))
    )
    transaction = Transaction.begin(stale, operation="MERGE").read_files(read)
    result = transaction.add(add("inserted", partition_values={"p": "p1"})).commit()
    assert isinstance(result, Committed)
