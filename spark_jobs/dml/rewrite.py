"""The second phase of a MERGE: the new rows of the touched files, and the inserted rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_core.jobs.params.merge_clauses import MergeAction
from delta_core.schema.types import StructType
from spark_jobs.dml.clauses import MergeClauses
from spark_jobs.dml.matching import BROADCAST_BYTES, Matches, chosen_clause, unmatched_source
from spark_jobs.dml.row_values import RowValues
from spark_jobs.dml.rows_after import rows_after
from spark_jobs.dml.source import MergeSource, Names, estimated_bytes
from spark_jobs.dml.target import TargetFiles
from spark_jobs.dml.values import Assignments, Caster, by_clause
from spark_jobs.expressions.columns import match_type, quoted
from spark_jobs.schema import to_spark, to_spark_type
from spark_jobs.writer.changed_rows import RowKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.dml.clauses import Sql

ROWS_PER_TASK = 500_000
"""The number of inserted rows per task, so that the tasks write few small files."""

POSITION_BYTES = 120
"""The approximate size of a place in a join."""


def merged_rows(
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
    """All rows to write: unchanged and changed rows of the touched files, then inserted rows.

    None when no file is touched and no clause inserts rows. With row tracking the rows have the hidden
    columns. Where the merge records changes, the rows have the columns `names.kind` and `names.before`, and
    deleted rows are among them.
    """
    parts = []
    if len(touched):
        parts.append(
            _rewritten(
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


def _rewritten(
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
    same = same_position(names)
    by_source = clauses.not_matched_by_source
    if by_source:
        joined, by_source_values = _with_by_source_actions(
            rows.join(_matched_positions(matches, clauses, names), same, "left"),
            clauses,
            values,
            schema=schema,
            names=names,
            caster=caster,
        )
        if has_updates(clauses):
            source_rows = broadcast_if_small(source.frame, source_bytes(source, source.rows))
            joined = joined.join(
                source_rows.alias(source.alias), fn.col(f"{names.row}_s") == fn.col(names.row), "left"
            )
    else:
        changes = _changes(source, matches, clauses, names)
        joined, by_source_values = rows.join(changes.alias(source.alias), same, "left"), []
    all_clauses = [
        *zip([clause.action for clause in clauses.matched], values.matched, strict=True),
        *zip([clause.action for clause in by_source], by_source_values, strict=True),
    ]
    kept = {field.name: unchanged_column(touched, field.name, schema, target_alias) for field in schema}
    return rows_after(joined, all_clauses, kept=kept, rest=rest, names=names, caster=caster)


def _with_by_source_actions(
    joined: DataFrame,
    clauses: MergeClauses,
    values: Assignments,
    *,
    schema: StructType,
    names: Names,
    caster: Caster,
) -> tuple[DataFrame, list[Mapping[str, Sql]]]:
    """The rows with the action and the values of the `not matched by source` clauses.

    These clauses may name the target's columns without the alias, so they are evaluated before the join adds
    the source's columns.
    """
    from pyspark.sql import functions as fn

    first = len(clauses.matched)
    by_source_action = chosen_clause(clauses.not_matched_by_source) + fn.lit(first)
    action = fn.when(fn.col(names.matched).isNull(), by_source_action).otherwise(fn.col(names.action))
    joined = joined.withColumn(names.action, action)
    return by_source_values(joined, first, values, schema=schema, names=names, caster=caster)


def by_source_values(
    joined: DataFrame,
    first: int,
    values: Assignments,
    *,
    schema: StructType,
    names: Names,
    caster: Caster,
) -> tuple[DataFrame, list[Mapping[str, Sql]]]:
    """The rows with the values of the `not matched by source` clauses as columns, and the names of these.

    The column `names.action` is the index of the clause, where the first of these clauses has `first`.
    """
    from pyspark.sql import functions as fn

    found: list[Mapping[str, Sql]] = []
    for index, given in enumerate(values.not_matched_by_source, first):
        kept: dict[str, Sql] = {}
        for number, (name, value) in enumerate(given.items()):
            field = schema.find(name)
            assert field is not None
            column = f"{names.action}_{index}_{number}"
            wanted = fn.when(fn.col(names.action) == fn.lit(index), caster.value(joined, value, field))
            joined = joined.withColumn(column, wanted)
            kept[name] = quoted(column)
        found.append(kept)
    return joined, found


def _matched_positions(matches: Matches, clauses: MergeClauses, names: Names) -> DataFrame:
    """One row per matched position: its action and, when a clause needs it, its source row."""
    from pyspark.sql import functions as fn

    columns = position_columns(names)
    if has_updates(clauses):
        frame = matches.pairs.select(*columns, fn.col(names.row).alias(f"{names.row}_s"))
    else:
        # Several source rows may match one deleted row.
        frame = matches.pairs.select(*columns).distinct()
    return broadcast_if_small(frame, matches.number * POSITION_BYTES)


def _changes(source: MergeSource, matches: Matches, clauses: MergeClauses, names: Names) -> DataFrame:
    """One row per changed position: its action and, when a clause needs them, the source's values."""
    from pyspark.sql import functions as fn

    pairs = matches.pairs.where(fn.col(names.action).isNotNull())
    if not has_updates(clauses):
        return broadcast_if_small(
            pairs.select(*position_columns(names)).distinct(), matches.number * POSITION_BYTES
        )
    found = source.frame.join(broadcast_if_small(pairs, matches.number * POSITION_BYTES), names.row, "inner")
    changes = found.select(*position_columns(names), *[fn.col(quoted(name)) for name in source.columns])
    return broadcast_if_small(changes, matches.number * POSITION_BYTES + source_bytes(source, matches.number))


def position_key(names: Names) -> Column:
    """One number for a place."""
    from pyspark.sql import functions as fn

    return fn.xxhash64(fn.col(names.file), fn.col(names.position))


def same_position(names: Names) -> Column:
    """The join condition: the target row is at the file and position of a match.

    The join key is one hash per position, which Spark looks up as a long. The comparison of file and position
    excludes hash collisions. It uses `>=` and `<=`, because `=` would make them part of a wider join key.
    """
    from pyspark.sql import functions as fn

    same = fn.col(names.key) == fn.col(f"{names.key}_s")
    for name in (names.position, names.file):
        ours, found = fn.col(name), fn.col(f"{name}_s")
        same = same & (ours >= found) & (ours <= found)
    return same


def position_columns(names: Names) -> list[Column]:
    """The place of a match with its action, for `same_position`."""
    from pyspark.sql import functions as fn

    return [
        position_key(names).alias(f"{names.key}_s"),
        fn.col(names.file).alias(f"{names.file}_s"),
        fn.col(names.position).alias(f"{names.position}_s"),
        fn.col(names.action),
        fn.lit(True).alias(names.matched),
    ]


def has_updates(clauses: MergeClauses) -> bool:
    """Whether a clause updates matched rows."""
    return any(clause.action is not MergeAction.DELETE for clause in clauses.matched)


def source_bytes(source: MergeSource, rows: int) -> int:
    """The approximate size of rows of the source in memory."""
    return estimated_bytes(source.schema, source.columns, rows)


def broadcast_if_small(frame: DataFrame, size_bytes: int) -> DataFrame:
    """The rows, which Spark broadcasts when they are few."""
    from pyspark.sql import functions as fn

    return fn.broadcast(frame) if size_bytes <= BROADCAST_BYTES else frame


def unchanged_column(touched: TargetFiles, name: str, schema: StructType, alias: str) -> Column:
    """The unchanged value of a column; null when the merge adds the column to the table."""
    from pyspark.sql import functions as fn

    before, after = touched.schema.find(name), schema.find(name)
    assert after is not None
    wanted = to_spark(StructType((after,))).fields[0].dataType
    if before is None:
        return fn.lit(None).cast(wanted)
    found = to_spark(StructType((before,))).fields[0].dataType
    column = fn.col(f"{quoted(alias)}.{quoted(before.name)}")
    return column if found == wanted else match_type(column, found, wanted)


def inserted_rows(
    source: MergeSource,
    matches: Matches,
    *,
    clauses: MergeClauses,
    values: Assignments,
    rest: RowValues,
    names: Names,
    caster: Caster,
) -> DataFrame:
    """The rows that the `not matched` clauses insert."""
    from pyspark.sql import functions as fn

    schema = rest.plan.schema
    absent_values = rest.absent(source, matches, clauses)
    rows = unmatched_source(source, matches, clauses, names)
    all_clauses = list(zip([c.action for c in clauses.not_matched], values.not_matched, strict=True))
    columns = []
    for field in schema:
        absent = absent_values.get(field.name, fn.lit(None)).cast(to_spark_type(field.data_type))
        if len(all_clauses) == 1 and field.name in all_clauses[0][1]:
            value = caster.value(rows, all_clauses[0][1][field.name], field)
        else:
            value = by_clause(fn.col(names.action), rows, field, all_clauses, otherwise=absent, caster=caster)
        columns.append(value.alias(field.name))
    columns += rest.states(fn.col(names.action), all_clauses)
    if rest.tracking is not None:
        hidden = (rest.tracking.row_id_column, rest.tracking.row_commit_version_column)
        columns += [fn.lit(None).cast("bigint").alias(name) for name in hidden]
    if rest.records_changes:
        columns.append(fn.lit(RowKind.INSERTED).alias(names.kind))
        columns.append(fn.lit(None).cast(to_spark(schema)).alias(names.before))
    return rows.select(*columns).coalesce(max(1, -(-source.rows // ROWS_PER_TASK)))
