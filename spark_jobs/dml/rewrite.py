"""The second phase of a MERGE: the new rows of the touched files, and the inserted rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRows:
    """Input of the second phase of a MERGE.

    Attributes:
        spark: the session of the source.
        source: the source.
        touched: the files with rows that change.
        matches: the result of the first phase.
        clauses, values: the clauses and the values that they assign.
        rest: the values that no clause assigns.
        target_alias: the table's alias in the clauses.
        names: the names of added columns.
        caster: casts the assigned values.
    """

    spark: SparkSession
    source: MergeSource
    touched: TargetFiles
    matches: Matches
    clauses: MergeClauses
    values: Assignments
    rest: RowValues
    target_alias: str
    names: Names
    caster: Caster

    @property
    def schema(self) -> StructType:
        """The table's schema after the merge."""
        return self.rest.plan.schema

    def target_rows(self) -> DataFrame:
        """The rows of the touched files by the table's alias, with their places and, if tracked, row ids."""
        tracking = self.rest.tracking
        if tracking is None:
            rows = self.touched.scan(self.spark, self.names)
        else:
            rows = self.touched.scan_with_row_ids(self.spark, self.names, tracking)
        return rows.withColumn(self.names.key, position_key(self.names)).alias(self.target_alias)

    def with_source(self, rows: DataFrame) -> DataFrame:
        """The rows with the columns of the source row whose number they have, when a clause needs them."""
        from pyspark.sql import functions as fn

        if not has_updates(self.clauses):
            return rows
        found = broadcast_if_small(self.source.frame, source_bytes(self.source, self.source.rows))
        same_row = fn.col(f"{self.names.row}_s") == fn.col(self.names.row)
        return rows.join(found.alias(self.source.alias), same_row, "left")

    def after(self, rows: DataFrame, by_source: Sequence[Mapping[str, Sql]]) -> DataFrame:
        """The rows to write, from rows of the table with the index of their clause."""
        clauses, values = self.clauses, self.values
        all_clauses = [
            *zip([clause.action for clause in clauses.matched], values.matched, strict=True),
            *zip([clause.action for clause in clauses.not_matched_by_source], by_source, strict=True),
        ]
        kept = {
            field.name: unchanged_column(self.touched, field.name, self.schema, self.target_alias)
            for field in self.schema
        }
        return rows_after(rows, all_clauses, kept=kept, rest=self.rest, names=self.names, caster=self.caster)


def rows_to_write(work: MergeRows, of_target: DataFrame | None) -> DataFrame | None:
    """The rows of the target to write and the inserted rows; None when there are neither."""
    parts = [] if of_target is None else [of_target]
    if work.clauses.not_matched:
        rows = unmatched_source(work.source, work.matches, work.clauses, work.names)
        parts.append(inserted_rows(work, rows))
    if not parts:
        return None
    return work.rest.completed(parts[0] if len(parts) == 1 else parts[0].union(parts[1]))


def merged_rows(work: MergeRows) -> DataFrame | None:
    """All rows to write: unchanged and changed rows of the touched files, then inserted rows.

    None when no file is touched and no clause inserts rows. With row tracking the rows have the hidden
    columns. Where the merge records changes, the rows have the columns `names.kind` and `names.before`, and
    deleted rows are among them.
    """
    return rows_to_write(work, _rewritten(work) if len(work.touched) else None)


def _rewritten(work: MergeRows) -> DataFrame:
    names, clauses = work.names, work.clauses
    rows, same = work.target_rows(), same_position(names)
    if not clauses.not_matched_by_source:
        changes = _changes(work.source, work.matches, clauses, names)
        return work.after(rows.join(changes.alias(work.source.alias), same, "left"), [])
    joined, found = _with_by_source_actions(
        rows.join(_matched_positions(work.matches, clauses, names), same, "left"),
        clauses,
        work.values,
        schema=work.schema,
        names=names,
        caster=work.caster,
    )
    return work.after(work.with_source(joined), found)


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


def inserted_rows(work: MergeRows, rows: DataFrame) -> DataFrame:
    """The rows that the `not matched` clauses insert, from the rows of `unmatched_source`."""
    from pyspark.sql import functions as fn

    source, clauses, values = work.source, work.clauses, work.values
    rest, names, caster, schema = work.rest, work.names, work.caster, work.schema
    absent_values = rest.absent(source, work.matches, clauses)
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
