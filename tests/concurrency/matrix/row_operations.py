"""Operations on a table with deletion vectors, by delta_core and by Spark, for the rules of `row_rules`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.dml.delete import delete_rows
from delta_core.dml.update import update_rows
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering.plan import plan_z_order
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.maintenance.purge.plan import plan_purge
from delta_core.merge import MergeRequest, merge_rows
from delta_core.merge.clauses import MergeAction, MergeClause, MergeClauses
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from tests.concurrency.matrix.layouts import Handle
from tests.concurrency.matrix.operation import Interruption
from tests.concurrency.matrix.row_rules import FILES, GONE, RowFootprint

State = Counter[tuple[int, int]]
Attempt = Callable[[Snapshot, Interruption, Any], object]

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
_ALONE = InlineExecutor(1)
_UPSERT = MergeClauses(
    matched=(MergeClause(action=MergeAction.UPDATE, values={"v": "t.v + s.v"}),),
    not_matched=(MergeClause(action=MergeAction.INSERT_ALL),),
)
_INSERT = replace(_UPSERT, matched=())


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOperation:
    """An operation.

    Attributes:
        attempt: runs it on a snapshot, with the hook before its commit and a Spark session.
        footprint: what it declares.
        effect: the rows after it.
        needs_spark: whether it runs on Spark.
    """

    attempt: Attempt
    footprint: RowFootprint
    effect: Callable[[State], State]
    needs_spark: bool = False


def make(root: Path, level: str, *, row_ids: bool) -> None:
    """The table of `row_rules`: each row has its id as its value."""
    properties = {"delta.enableDeletionVectors": "true", "delta.isolationLevel": level}
    if row_ids:
        properties["delta.enableRowTracking"] = "true"
    DeltaTable.create(root, schema=SCHEMA, configuration=properties)
    for ids in FILES.values():
        write_deltalake(root, rows(sorted(ids)), mode="append")
    DeltaTable(root).delete(f"id = {GONE}")


def rows(ids: Iterable[int]) -> pa.Table:
    """Rows with these ids."""
    numbers = list(ids)
    return pa.table({"id": numbers, "v": numbers}, SCHEMA)


def state_of(root: Path) -> State:
    """The table's rows."""
    table = DeltaTable(root).to_pyarrow_table()
    return Counter(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))


def _append(*ids: int) -> RowOperation:
    return RowOperation(
        attempt=lambda snapshot, hook, spark: write_deltalake(
            Handle(snapshot), rows(ids), mode="append", observer=hook
        ),
        footprint=RowFootprint(inserts=frozenset(ids)),
        effect=lambda state: state + Counter((number, number) for number in ids),
    )


def _ids(low: int, high: int) -> frozenset[int]:
    return frozenset(range(low, high)) - {GONE}


def _where(low: int, high: int) -> str:
    return f"id >= {low} AND id < {high}"


def _delete(low: int, high: int, *, spark: bool = False) -> RowOperation:
    def on_spark(snapshot: Snapshot, hook: Interruption, session: Any) -> object:
        from spark_jobs.dml.delete import delete_from
        from spark_jobs.dml.statement import StatementRequest

        request = StatementRequest(where=_where(low, high))
        return delete_from(session, snapshot, request, run=Run(observer=hook))

    def alone(snapshot: Snapshot, hook: Interruption, session: Any) -> object:
        return delete_rows(snapshot, _where(low, high), run=Run(observer=hook))

    return RowOperation(
        attempt=on_spark if spark else alone,
        needs_spark=spark,
        footprint=RowFootprint(matches=lambda i: low <= i < high, changes=_ids(low, high)),
        effect=lambda state: Counter({row: n for row, n in state.items() if not low <= row[0] < high}),
    )


def _update(low: int, high: int, *, spark: bool = False) -> RowOperation:
    def on_spark(snapshot: Snapshot, hook: Interruption, session: Any) -> object:
        from spark_jobs.dml.statement import StatementRequest
        from spark_jobs.dml.update import update_in

        request = StatementRequest(where=_where(low, high))
        return update_in(session, snapshot, {"v": "v + 100"}, request, run=Run(observer=hook))

    def alone(snapshot: Snapshot, hook: Interruption, session: Any) -> object:
        return update_rows(snapshot, {"v": "v + 100"}, _where(low, high), run=Run(observer=hook))

    def effect(state: State) -> State:
        after: State = Counter()
        for (number, value), count in state.items():
            after[number, value + 100 if low <= number < high else value] += count
        return after

    return RowOperation(
        attempt=on_spark if spark else alone,
        needs_spark=spark,
        footprint=RowFootprint(matches=lambda i: low <= i < high, changes=_ids(low, high), writes=True),
        effect=effect,
    )


def _merge(*ids: int, spark: bool = False, updates: bool = True) -> RowOperation:
    there = frozenset().union(*FILES.values()) - {GONE}
    clauses = _UPSERT if updates else _INSERT

    def on_spark(snapshot: Snapshot, hook: Interruption, session: Any) -> object:
        from spark_jobs.dml.merge import MergeRequest as SparkRequest
        from spark_jobs.dml.merge import merge_into

        frame = session.createDataFrame(rows(ids)).coalesce(1).alias("s")
        request = SparkRequest(on="t.id = s.id", clauses=clauses, source_alias="s")
        return merge_into(frame, snapshot, request, run=Run(observer=hook))

    def alone(snapshot: Snapshot, hook: Interruption, session: Any) -> object:
        request = MergeRequest(on="t.id = s.id", clauses=clauses, source_alias="s", target_alias="t")
        return merge_rows(snapshot, rows(ids), request, run=Run(observer=hook))

    def effect(state: State) -> State:
        known = {number for number, _ in state}
        after: State = Counter()
        for (number, value), count in state.items():
            after[number, value + number if updates and number in ids else value] += count
        return after + Counter((number, number) for number in ids if number not in known)

    return RowOperation(
        attempt=on_spark if spark else alone,
        needs_spark=spark,
        footprint=RowFootprint(
            matches=lambda i: i in ids,
            changes=frozenset(ids) & there if updates else frozenset(),
            writes=True,
            may_insert=True,
            inserts=frozenset(ids) - there,
        ),
        effect=effect,
    )


def _rewrite(plan: Callable[[Snapshot], Any], *files: str) -> RowOperation:
    return RowOperation(
        attempt=lambda snapshot, hook, spark: apply_rewrite(
            snapshot, plan(snapshot), run=Run(executor=_ALONE, observer=hook)
        ),
        footprint=RowFootprint(rewrites=frozenset(files)),
        effect=lambda state: state,
    )


OPERATIONS: dict[str, RowOperation] = {
    "append apart": _append(100),
    "append among": _append(4),
    "delete 0-2": _delete(0, 3),
    "delete 2-5": _delete(2, 6),
    "delete 7-12": _delete(7, 13),
    "delete A": _delete(0, 10),
    "update 0-2": _update(0, 3),
    "update 7-12": _update(7, 13),
    "merge": _merge(4, 9, 50),
    "insert by merge": _merge(50, 51, updates=False),
    "compaction": _rewrite(plan_compaction, *FILES),
    "purge": _rewrite(plan_purge, "B"),
    "z-order": _rewrite(lambda snapshot: plan_z_order(snapshot, ["v"], full=True), *FILES),
    "delete 2-5 on Spark": _delete(2, 6, spark=True),
    "update 7-12 on Spark": _update(7, 13, spark=True),
    "merge on Spark": _merge(4, 9, 50, spark=True),
}
