"""The second phase of a MERGE with deletion vectors: only the updated and the inserted rows are written.

The old rows are deleted by deletion vectors. Where every value of the updated rows comes from the source, the
target is not read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.merge.clauses import MergeAction
from spark_jobs.dml.clauses import MergeClauses
from spark_jobs.dml.matching import Matches
from spark_jobs.dml.rewrite import (
    POSITION_BYTES,
    broadcast_if_small,
    by_source_values,
    has_updates,
    inserted_rows,
    position_columns,
    position_key,
    same_position,
    source_bytes,
    unchanged_column,
)
from spark_jobs.dml.row_values import RowValues
from spark_jobs.dml.rows_after import rows_after
from spark_jobs.dml.source import MergeSource, Names
from spark_jobs.dml.target import TargetFiles
from spark_jobs.dml.values import Assignments, Caster
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def changed_rows(
    spark: SparkSession,
    source: MergeSource,
    touched: TargetFiles,
    matches: Matches,
    *,
    clauses: MergeClauses,
    values: Assignments,
    rest: RowValues,
    target_alias: str,
    names: Names,
    caster: Caster,
) -> DataFrame | None:
    """All rows to write: updated rows, then inserted rows. None when there is no such row.

    The columns are those of `merged_rows`. Where the merge records changes, deleted rows are among them.
    """
    parts = []
    if len(touched) and (rest.records_changes or _has_updated(matches, clauses)):
        if _come_from_source(clauses, values, rest):
            parts.append(_from_source(source, matches, clauses, values, rest, names, caster))
        else:
            parts.append(
                _from_target(
                    spark,
                    source,
                    touched,
                    matches,
                    clauses=clauses,
                    values=values,
                    rest=rest,
                    target_alias=target_alias,
                    names=names,
                    caster=caster,
                )
            )
    if clauses.not_matched:
        parts.append(
            inserted_rows(
                source,
                matches,
                clauses=clauses,
                values=values,
                rest=rest,
                names=names,
                caster=caster,
            )
        )
    if not parts:
        return None
    return rest.completed(parts[0] if len(parts) == 1 else parts[0].union(parts[1]))


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


def _from_source(
    source: MergeSource,
    matches: Matches,
    clauses: MergeClauses,
    values: Assignments,
    rest: RowValues,
    names: Names,
    caster: Caster,
) -> DataFrame:
    from pyspark.sql import functions as fn

    action = fn.col(names.action)
    updates = [index for index, item in enumerate(clauses.matched) if item.action is not MergeAction.DELETE]
    pairs = matches.pairs.where(action.isin(updates)).select(names.row, names.action)
    pairs = broadcast_if_small(pairs, matches.number * POSITION_BYTES)
    rows = source.frame.join(pairs, names.row, "inner").alias(source.alias)
    kept: dict[str, Column] = {
        field.name: fn.lit(None).cast(to_spark_type(field.data_type)) for field in rest.plan.schema
    }
    chosen = list(zip([clause.action for clause in clauses.matched], values.matched, strict=True))
    return rows_after(rows, chosen, kept=kept, rest=rest, names=names, caster=caster)


def _from_target(
    spark: SparkSession,
    source: MergeSource,
    touched: TargetFiles,
    matches: Matches,
    *,
    clauses: MergeClauses,
    values: Assignments,
    rest: RowValues,
    target_alias: str,
    names: Names,
    caster: Caster,
) -> DataFrame:
    from pyspark.sql import functions as fn

    schema, tracking = rest.plan.schema, rest.tracking
    if tracking is None:
        rows = touched.scan(spark, names)
    else:
        rows = touched.scan_with_row_ids(spark, names, tracking)
    rows = rows.withColumn(names.key, position_key(names)).alias(target_alias)
    places = _places(matches, clauses, names, records_changes=rest.records_changes)
    joined = rows.join(places, same_position(names), "inner")
    joined, found = by_source_values(
        joined, len(clauses.matched), values, schema=schema, names=names, caster=caster
    )
    if has_updates(clauses):
        source_rows = broadcast_if_small(source.frame, source_bytes(source, source.rows))
        same_row = fn.col(f"{names.row}_s") == fn.col(names.row)
        joined = joined.join(source_rows.alias(source.alias), same_row, "left")
    all_clauses = [
        *zip([clause.action for clause in clauses.matched], values.matched, strict=True),
        *zip([clause.action for clause in clauses.not_matched_by_source], found, strict=True),
    ]
    kept = {field.name: unchanged_column(touched, field.name, schema, target_alias) for field in schema}
    return rows_after(joined, all_clauses, kept=kept, rest=rest, names=names, caster=caster)


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
