"""The rows that a statement writes, from rows of the table with the index of the clause that applies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_core.merge.clauses import MergeAction
from spark_jobs.dml.row_values import RowValues
from spark_jobs.dml.source import Names
from spark_jobs.dml.values import Caster, by_clause
from spark_jobs.expressions.columns import quoted
from spark_jobs.writer.changed_rows import RowKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from spark_jobs.dml.clauses import Sql


def rows_after(
    frame: DataFrame,
    clauses: Sequence[tuple[MergeAction, Mapping[str, Sql]]],
    *,
    kept: Mapping[str, Column],
    rest: RowValues,
    names: Names,
    caster: Caster,
) -> DataFrame:
    """The rows to write, for `RowValues.completed`.

    Deleted rows are among them only where the statement records changes. With row tracking the rows have the
    hidden columns: a row keeps its id, and an updated row gets the version of the commit.

    Args:
        frame: rows of the table. `names.action` is the index of the clause; null copies the row.
        clauses: the action and the assigned values of each clause.
        kept: the unchanged value of each column of the table after the statement.
        rest: the values that no clause assigns.
        names: the names of the added columns.
        caster: casts the assigned values.
    """
    from pyspark.sql import functions as fn

    action = fn.col(names.action)
    deletes = [index for index, (kind, _) in enumerate(clauses) if kind is MergeAction.DELETE]
    if deletes and not rest.records_changes:
        frame = frame.where(action.isNull() | ~action.isin(deletes))
    columns = []
    for field in rest.plan.schema:
        value = by_clause(action, frame, field, clauses, otherwise=kept[field.name], caster=caster)
        columns.append(value.alias(field.name))
    columns += rest.states(action, clauses)
    is_updated = action.isNotNull() & ~action.isin(deletes) if deletes else action.isNotNull()
    tracking = rest.tracking
    if tracking is not None:
        version = fn.col(quoted(tracking.row_commit_version_column))
        columns += [
            fn.col(quoted(tracking.row_id_column)),
            fn.when(~is_updated, version).alias(tracking.row_commit_version_column),
        ]
    if rest.records_changes:
        kind = fn.when(is_updated, fn.lit(RowKind.UPDATED)).otherwise(fn.lit(RowKind.COPIED))
        if deletes:
            kind = fn.when(action.isin(deletes), fn.lit(RowKind.DELETED)).otherwise(kind)
        before = fn.struct(*[column.alias(name) for name, column in kept.items()])
        columns += [kind.alias(names.kind), fn.when(is_updated, before).alias(names.before)]
    return frame.select(*columns)
