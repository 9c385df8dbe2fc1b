"""DELETE, UPDATE and MERGE, staged through `Transaction` as the Spark job stages them.

Only the rewriting is done here without Spark: predicate, files read, removes and adds are those of
`spark_jobs.dml.commit.commit_change`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from delta_core.data.row_files import write_data_files
from delta_core.dml.commit_files import REMOVED_COLUMNS
from delta_core.dml.delete import delete_rows
from delta_core.expressions.parse import parse_predicate
from delta_core.merge import MergeRequest, merge_rows
from delta_core.merge.clauses import MergeAction, MergeClause, MergeClauses
from delta_core.run import Run
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import Committed, raise_for_result
from delta_core.transaction.file_actions import add_actions, remove_actions
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.transaction import Transaction
from tests.concurrency.matrix.footprint import Box, Footprint
from tests.concurrency.matrix.layouts import PARTITION_FILES, Target
from tests.concurrency.matrix.operation import Operation
from tests.concurrency.matrix.state import Row, TableState, file_rows
from tests.concurrency.matrix.writes import in_range, new_box, new_row


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A statement.

    Attributes:
        operation: its name in the history.
        predicate: Spark SQL; what every row satisfies that the outcome rests on.
        change: a row as it becomes, or None when it goes.
        inserted: the new rows, given every row that was read.
    """

    operation: str
    predicate: str
    change: Callable[[Row], Row | None] = lambda row: row
    inserted: Callable[[list[Row]], Iterable[Row]] = lambda rows: ()


def commit_row_change(
    snapshot: Snapshot,
    change: RowChange,
    *,
    observer: TransactionObserver = NULL_OBSERVER,
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
) -> Committed:
    """Read the files that the predicate may match, rewrite those that change, and commit."""
    store = snapshot.store
    predicate = parse_predicate(change.predicate, snapshot.schema)
    candidates = Scan(snapshot, predicate=predicate).files()
    seen: list[Row] = []
    new: list[Row] = []
    touched: list[int] = []
    for index, add in enumerate(add_actions(candidates, data_change=True)):
        before = file_rows(snapshot, add)
        after = tuple(row for row in map(change.change, before) if row is not None)
        seen += before
        if after != before:
            touched.append(index)
            new += after
    adds = []
    # Each group becomes a file of its own, as rewritten and inserted rows do on Spark.
    for group in (new, list(change.inserted(seen))):
        if group:
            data = pa.table({name: [row[i] for row in group] for i, name in enumerate(("id", "p", "v"))})
            adds += write_data_files(
                store, data, schema=snapshot.schema, partition_columns=snapshot.partition_columns
            )
    transaction = Transaction.begin(
        snapshot, operation=change.operation, observer=observer, properties=properties
    )
    transaction.read_predicate(predicate).read_files(candidates.column("path").to_pylist())
    removed = candidates.take(pa.array(touched, pa.int64())).select(REMOVED_COLUMNS)
    transaction.add(*remove_actions(removed, deletion_timestamp_ms=snapshot.clock.now_ms()), *adds)
    result = transaction.commit()
    if not isinstance(result, Committed):
        OwnedFiles(store=store).with_data(adds).discard(result)
    return raise_for_result(result)


def _operation(
    name: str,
    change: Callable[[Target], RowChange],
    footprint: Callable[[Target], Footprint],
) -> Operation:
    def effect(state: TableState, target: Target) -> TableState:
        statement = change(target)
        return state.mapped(statement.change, *statement.inserted(list(state.rows)))

    return Operation(
        name=name,
        commits=(change(_ANYWHERE).operation,),
        run=lambda case: commit_row_change(
            case.snapshot, change(case.target), observer=case.interruption, properties=case.properties
        ),
        footprint=footprint,
        effect=effect,
    )


_ANYWHERE = Target(who="", partition="", low=0, high=0, row=0, kept=0, new=0, file="", region=("", ""))


def _delete(target: Target) -> RowChange:
    return RowChange(
        operation="DELETE",
        predicate=target.predicate,
        change=lambda row: None if in_range(target, row) else row,
    )


def _delete_partition(target: Target) -> RowChange:
    return RowChange(
        operation="DELETE",
        predicate=f"p = '{target.partition}'",
        change=lambda row: None if row[1] == target.partition else row,
    )


def _update(target: Target) -> RowChange:
    return RowChange(
        operation="UPDATE",
        predicate=target.predicate,
        # The old value stays in the new one, so that two updates in either order tell their order.
        change=lambda row: (*row[:2], f"{row[2]}, {target.value}") if in_range(target, row) else row,
    )


def _insert(target: Target, rows: list[Row]) -> Iterable[Row]:
    there = any(row[:2] == (target.new, target.partition) for row in rows)
    return () if there else (new_row(target),)


def _merge(target: Target) -> RowChange:
    matched = {target.row, target.new}
    return RowChange(
        operation="MERGE",
        predicate=f"p = '{target.partition}' AND id IN ({target.row}, {target.new})",
        change=lambda row: (
            (*row[:2], f"{row[2]}, {target.value}")
            if row[1] == target.partition and row[0] in matched
            else row
        ),
        inserted=lambda rows: _insert(target, rows),
    )


def _merge_insert(target: Target) -> RowChange:
    return RowChange(
        operation="MERGE",
        predicate=f"p = '{target.partition}' AND id IN ({target.new})",
        inserted=lambda rows: _insert(target, rows),
    )


def _box(target: Target, low: int, high: int) -> Box:
    return Box(partition=target.partition, low=low, high=high)


def _file_box(target: Target) -> Box:
    return _box(target, *sorted((target.row, target.kept)))


def _delete_footprint(target: Target) -> Footprint:
    return Footprint(
        reads=(_box(target, target.low, target.high),),
        read_files=frozenset({target.file}),
        removes=frozenset({target.file}),
        adds=(_box(target, target.kept, target.kept),),
    )


def _merge_footprint(target: Target) -> Footprint:
    low, *_, high = sorted((target.row, target.kept, target.new))
    return Footprint(
        # Two ids next to each other: between them is none that the predicate would rule out.
        reads=(_box(target, *sorted((target.row, target.new))),),
        read_files=frozenset({target.file}),
        removes=frozenset({target.file}),
        # Copied, updated and inserted rows share a file.
        adds=(_box(target, low, high),),
    )


_UPSERT = MergeRequest(
    on="target.p = source.p AND target.id = source.id",
    clauses=MergeClauses(
        matched=(MergeClause(action=MergeAction.UPDATE, values={"v": "concat(target.v, ', ', source.v)"}),),
        not_matched=(MergeClause(action=MergeAction.INSERT_ALL),),
    ),
)

ROW_CHANGES = (
    Operation(
        name="delete without Spark",
        commits=("DELETE",),
        run=lambda case: (
            delete_rows(
                case.snapshot,
                case.target.predicate,
                run=Run(observer=case.interruption, commit=case.properties),
            ).committed
        ),
        footprint=_delete_footprint,
        effect=lambda state, target: state.without(lambda row: in_range(target, row)),
    ),
    Operation(
        name="merge without Spark",
        commits=("MERGE",),
        run=lambda case: (
            merge_rows(
                case.snapshot,
                pa.table(
                    {
                        "id": pa.array([case.target.row, case.target.new], pa.int64()),
                        "p": [case.target.partition] * 2,
                        "v": [case.target.value] * 2,
                    }
                ),
                _UPSERT,
                run=Run(observer=case.interruption, commit=case.properties),
            ).committed
        ),
        footprint=_merge_footprint,
        effect=lambda state, target: state.mapped(_merge(target).change, *_insert(target, list(state.rows))),
    ),
    _operation(
        "delete",
        _delete,
        _delete_footprint,
    ),
    _operation(
        "delete partition",
        _delete_partition,
        lambda target: Footprint(
            reads=(Box(partition=target.partition),),
            read_files=PARTITION_FILES[target.partition],
            removes=PARTITION_FILES[target.partition],
        ),
    ),
    _operation(
        "update",
        _update,
        lambda target: Footprint(
            reads=(_box(target, target.low, target.high),),
            read_files=frozenset({target.file}),
            removes=frozenset({target.file}),
            adds=(_file_box(target),),
        ),
    ),
    _operation(
        "merge",
        _merge,
        lambda target: Footprint(
            # Two ids next to each other: between them is none that the predicate would rule out.
            reads=(_box(target, *sorted((target.row, target.new))),),
            read_files=frozenset({target.file}),
            removes=frozenset({target.file}),
            adds=(_file_box(target), new_box(target)),
        ),
    ),
    _operation(
        "merge that inserts",
        _merge_insert,
        lambda target: Footprint(
            reads=(new_box(target),), read_files=frozenset({target.file}), adds=(new_box(target),)
        ),
    ),
)
