"""The second phase of a MERGE with deletion vectors: only the updated and the inserted rows are written.

The old rows are deleted by deletion vectors. Where every value of the updated rows comes from the source, the
target is not read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from delta_core.merge.clauses import MergeAction
from spark_jobs.dml.clauses import MergeClauses
from spark_jobs.dml.matching import Matches
from spark_jobs.dml.rewrite import (
    POSITION_BYTES,
    MergeRows,
    broadcast_if_small,
    by_source_values,
    has_updates,
    inserted_rows,
    position_columns,
    rows_to_write,
    same_position,
)
from spark_jobs.dml.row_values import RowValues
from spark_jobs.dml.rows_after import rows_after
from spark_jobs.dml.source import Names, estimated_bytes
from spark_jobs.dml.values import Assignments
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROWS_PER_FILE: Final = 16
"""From so many source rows for each file of the target on, nearly every file is taken to have a match."""

MOST_KEPT_BYTES: Final = 512 << 20
"""The limit for matching rows that Spark keeps from the first phase, in memory or on disk."""


def changed_rows(work: MergeRows) -> DataFrame | None:
    """All rows to write: updated rows, then inserted rows. None when there is no such row.

    The columns are those of `merged_rows`. Where the merge records changes, deleted rows are among them.
    """
    from pyspark.sql import functions as fn

    clauses, rest = work.clauses, work.rest
    if len(work.touched) and _is_whole_source(work):
        rows = work.source.frame.withColumn(work.names.action, fn.lit(0))
        return rest.completed(inserted_rows(work, rows))
    updated = None
    if len(work.touched) and (rest.records_changes or _has_updated(work.matches, clauses)):
        updated = _from_source(work) if _come_from_source(clauses, work.values, rest) else _from_target(work)
    return rows_to_write(work, updated)


def _is_whole_source(work: MergeRows) -> bool:
    """Whether the rows to write are exactly the rows of the source, each once and with the same values."""
    clauses, values = work.clauses, work.values
    if len(clauses.matched) != 1 or len(clauses.not_matched) != 1 or clauses.not_matched_by_source:
        return False
    if any(clause.condition is not None for clause in (*clauses.matched, *clauses.not_matched)):
        return False
    if work.matches.repeats_source or not _come_from_source(clauses, values, work.rest):
        return False
    updated, inserted = values.matched[0], values.not_matched[0]
    # Columns cannot be compared.
    assigned = [*updated.values(), *inserted.values()]
    return (
        clauses.matched[0].action is not MergeAction.DELETE
        and all(isinstance(value, str) for value in assigned)
        and dict(updated) == dict(inserted)
    )


def _has_updated(matches: Matches, clauses: MergeClauses) -> bool:
    return any(matches.rows(section, getattr(clauses, section), "update") for section in matches.counts)


def _come_from_source(clauses: MergeClauses, values: Assignments, rest: RowValues) -> bool:
    """Whether updated rows need no value of their old rows."""
    if rest.records_changes or rest.tracking is not None:
        return False
    if any(clause.action is not MergeAction.DELETE for clause in clauses.not_matched_by_source):
        return False
    needed = set(rest.plan.schema.names) - {item.name for item in rest.generated}
    return all(
        clause.action is MergeAction.DELETE or (clause.action.takes_all and needed <= found.keys())
        for clause, found in zip(clauses.matched, values.matched, strict=True)
    )


def _from_source(work: MergeRows) -> DataFrame:
    from pyspark.sql import functions as fn

    names, matches, clauses = work.names, work.matches, work.clauses
    action = fn.col(names.action)
    updates = [index for index, item in enumerate(clauses.matched) if item.action is not MergeAction.DELETE]
    pairs = matches.pairs.where(action.isin(updates)).select(names.row, names.action)
    pairs = broadcast_if_small(pairs, matches.number * POSITION_BYTES)
    rows = work.source.frame.join(pairs, names.row, "inner").alias(work.source.alias)
    kept: dict[str, Column] = {
        field.name: fn.lit(None).cast(to_spark_type(field.data_type)) for field in work.schema
    }
    chosen = list(zip([clause.action for clause in clauses.matched], work.values.matched, strict=True))
    return rows_after(rows, chosen, kept=kept, rest=work.rest, names=names, caster=work.caster)


def keeps_columns(
    clauses: MergeClauses, values: Assignments, rest: RowValues, *, source_rows: int, files: int
) -> bool:
    """Whether the first phase also reads the target's columns that the second phase needs.

    It does where matches are probably in nearly all files, so that the second phase would read these files
    again, and where the matching rows are not too large to keep.
    """
    if not has_updates(clauses) or clauses.not_matched_by_source or _come_from_source(clauses, values, rest):
        return False
    schema = rest.plan.schema
    kept_bytes = estimated_bytes(schema, schema.names, source_rows)
    return source_rows >= ROWS_PER_FILE * files and kept_bytes <= MOST_KEPT_BYTES


def _from_pairs(work: MergeRows) -> DataFrame:
    from pyspark.sql import functions as fn

    names = work.names
    kinds = [clause.action for clause in work.clauses.matched]
    rows = work.matches.pairs.where(fn.col(names.action).isNotNull())
    if not work.rest.records_changes:
        updates = [index for index, kind in enumerate(kinds) if kind is not MergeAction.DELETE]
        rows = rows.where(fn.col(names.action).isin(updates))
    rows = rows.withColumnRenamed(names.row, f"{names.row}_s").alias(work.target_alias)
    return work.after(work.with_source(rows), [])


def _from_target(work: MergeRows) -> DataFrame:
    if work.matches.has_columns:
        return _from_pairs(work)
    names, clauses = work.names, work.clauses
    places = _places(work.matches, clauses, names, records_changes=work.rest.records_changes)
    joined, found = by_source_values(
        work.target_rows().join(places, same_position(names), "inner"),
        len(clauses.matched),
        work.values,
        schema=work.schema,
        names=names,
        caster=work.caster,
    )
    return work.after(work.with_source(joined), found)


def _places(matches: Matches, clauses: MergeClauses, names: Names, *, records_changes: bool) -> DataFrame:
    """One row per place to write: its action, and its source row when a clause needs it."""
    from pyspark.sql import functions as fn

    action = fn.col(names.action)
    columns = position_columns(names)
    first = len(clauses.matched)
    pairs = matches.pairs.where(action.isNotNull())
    row = fn.col(names.row) if has_updates(clauses) else fn.lit(None).cast("bigint")
    places = pairs.select(*columns, row.alias(f"{names.row}_s"))
    if not has_updates(clauses):
        # Several source rows may match one deleted row.
        places = places.distinct()
    if matches.unmatched is not None:
        alone = matches.unmatched.withColumn(names.action, action + fn.lit(first))
        no_row = fn.lit(None).cast("bigint").alias(f"{names.row}_s")
        places = places.union(alone.select(*columns, no_row))
    if not records_changes:
        kinds = [clause.action for clause in (*clauses.matched, *clauses.not_matched_by_source)]
        places = places.where(
            action.isin([index for index, kind in enumerate(kinds) if kind is not MergeAction.DELETE])
        )
    number = matches.number + sum(matches.counts["not_matched_by_source"].values())
    return broadcast_if_small(places, number * POSITION_BYTES)
