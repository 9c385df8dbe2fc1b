"""The first phase of a MERGE: the matching rows, the clause for each, and the files that contain them.

This phase evaluates the merge condition and the conditions of the matched clauses, once, and reads only the
columns that these name. The second phase finds the rows again by file and position. With deletion vectors the
matches come to the driver, as long as they are few enough: one job then finds, counts and checks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.dml.find_rows import FoundRows
from delta_core.errors import MergeDuplicateMatchError
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.columns import referenced_names
from delta_core.jobs.params.merge_clauses import MergeAction
from delta_core.table_features.row_tracking import RowTracking
from spark_jobs.dml.clauses import MergeClause, MergeClauses, conditions, sql_text, words
from spark_jobs.dml.positions import collected, rows_at, rows_in
from spark_jobs.dml.source import MergeSource, Names, as_column, estimated_bytes
from spark_jobs.dml.target import TargetFiles
from spark_jobs.expressions.columns import quoted
from spark_jobs.expressions.predicates import to_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.dml.clauses import Sql

BROADCAST_BYTES = 64 << 20
"""The limit for broadcasting one side of a join. Above it, Spark chooses the kind of join."""

SHOWN_KEYS = 5


@dataclass(slots=True, kw_only=True)
class Matches:
    """The result of a merge's first phase: which source rows match which target rows.

    Attributes:
        pairs: (source row, file, position, action) of every match, persisted in memory or on disk.
        number: the number of matches.
        touched: keys of the files that contain a changed row.
        counts: for `matched` and `not_matched_by_source`, the number of rows per clause.
        acted: the number of matches to which a clause applies.
        unmatched: (file, position, action) of the target rows to which a `not matched by source` clause
            applies, persisted like `pairs`; None without such clauses, and when they are not kept.
        collected: the pairs in the driver; None when they are too many, or were not asked for.
        has_columns: whether the pairs also have the columns of the target rows.
        repeats_source: whether a source row may have several matches.
    """

    pairs: DataFrame
    number: int = 0
    acted: int = 0
    unmatched: DataFrame | None = None
    collected: pa.Table | None = None
    has_columns: bool = False
    repeats_source: bool = True
    touched: set[str] = field(default_factory=set)
    counts: dict[str, dict[int, int]] = field(
        default_factory=lambda: {"matched": {}, "not_matched_by_source": {}}
    )

    def rows(self, section: str, clauses: Sequence[MergeClause], kind: str) -> int:
        """The number of rows that the clauses of this kind change, in one section of `counts`."""
        found = self.counts[section]
        return sum(found.get(index, 0) for index, c in enumerate(clauses) if c.action.kind == kind)

    def unpersist(self) -> None:
        """Release the persisted rows."""
        self.pairs.unpersist()
        if self.unmatched is not None:
            self.unmatched.unpersist()

    def changed_rows(self, target: TargetFiles, names: Names) -> FoundRows:
        """The target rows that change. Runs no job when all of them are in the driver.

        Raises:
            JobFailedError, InvalidTableError, pyspark.errors.PySparkException: see `rows_at`.
        """
        if self.collected is not None and self.unmatched is None:
            changed = self.collected.filter(pc.is_valid(self.collected[names.action]))
            return rows_in(changed, target, names)
        return rows_at(self._changed_places(names), target, names)

    def _changed_places(self, names: Names) -> DataFrame:
        """The file and position of every target row that changes, some of them several times."""
        from pyspark.sql import functions as fn

        columns = (names.file, names.position)
        places = self.pairs.where(fn.col(names.action).isNotNull()).select(*columns)
        return places if self.unmatched is None else places.union(self.unmatched.select(*columns))


def find_matches(
    spark: SparkSession,
    source: MergeSource,
    target: TargetFiles,
    *,
    on: Sql,
    clauses: MergeClauses,
    match_predicate: Expression,
    target_alias: str,
    names: Names,
    keeps_rows: bool = False,
    keeps_columns: bool = False,
    tracking: RowTracking | None = None,
) -> Matches:
    """Join the source with the target's key columns. The caller unpersists the result.

    `match_predicate` is true for every target row that can match. With `keeps_rows` the matches come to the
    driver if they are few enough, and the rows of the `not matched by source` clauses are kept, not only
    counted. With `keeps_columns` the pairs have the target's columns too, and those of `tracking`, so that
    the second phase need not read the target again.

    Raises:
        MergeDuplicateMatchError: several source rows match one target row, and the clauses do not allow it.
        pyspark.errors.PySparkException: Spark failed.
    """
    from pyspark.sql import functions as fn

    strings = [sql_text(on), *conditions(clauses.matched)]
    if not keeps_columns:
        needed_names = map(quoted, referenced_names(match_predicate))
        rows = target.scan(spark, names, strings=[*strings, *needed_names])
    elif tracking is None:
        rows = target.scan(spark, names)
    else:
        rows = target.scan_with_row_ids(spark, names, tracking)
    places = (names.file, names.position)
    columns = [name for name in rows.columns if name not in places] if keeps_columns else []
    if match_predicate != TRUE:
        rows = rows.where(to_column(match_predicate, target.schema))
    rows = rows.alias(target_alias)
    needed = _needed(source, strings)
    keys = source.frame.select(names.row, *[quoted(name) for name in needed])
    if estimated_bytes(source.schema, needed, source.rows) <= BROADCAST_BYTES:
        keys = fn.broadcast(keys)
    joined = rows.join(keys.alias(source.alias), as_column(on), "inner")
    pairs = joined.select(
        names.row,
        *places,
        chosen_clause(clauses.matched).alias(names.action),
        *[fn.col(f"{quoted(target_alias)}.{quoted(name)}") for name in columns],
    ).persist()
    matches = Matches(pairs=pairs, has_columns=keeps_columns)
    try:
        if keeps_rows:
            matches.collected = collected(pairs.select(names.row, *places, names.action))
        if matches.collected is None:
            duplicates = _count_matches(matches, names)
        else:
            duplicates = _count_collected(matches, matches.collected, names)
        if duplicates and not clauses.allows_many_matches:
            raise _duplicate_error(matches.pairs, source, on, names)
        if clauses.not_matched_by_source:
            _count_unmatched(
                matches,
                target.scan(
                    spark, names, strings=[sql_text(on), *conditions(clauses.not_matched_by_source)]
                ).alias(target_alias),
                keys.alias(source.alias),
                on=on,
                clauses=clauses.not_matched_by_source,
                names=names,
                keep=keeps_rows,
            )
    except BaseException:
        matches.unpersist()
        raise
    return matches


def chosen_clause(clauses: Sequence[MergeClause]) -> Column:
    """The index of the first clause whose condition is true, or else null."""
    from pyspark.sql import functions as fn

    chosen = None
    for index, clause in enumerate(clauses):
        condition = fn.lit(True) if clause.condition is None else as_column(clause.condition)
        number = fn.lit(index)
        chosen = fn.when(condition, number) if chosen is None else chosen.when(condition, number)
    return fn.lit(None).cast("int") if chosen is None else chosen


def _count_collected(matches: Matches, pairs: pa.Table, names: Names) -> bool:
    """Count the matches in the driver. Returns whether several source rows match one target row."""
    files = pairs[names.file].combine_chunks().dictionary_encode()
    keys = files.dictionary.to_pylist()
    codes = files.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    positions = pairs[names.position].to_numpy()
    actions = pc.fill_null(pairs[names.action], -1).to_numpy().astype(np.int64)
    order = np.lexsort((actions, positions, codes))
    codes, positions, actions = codes[order], positions[order], actions[order]
    # The last one of equal places has the largest action, as in `_count_matches`.
    last = np.ones(len(codes), np.bool_)
    last[:-1] = (np.diff(codes) != 0) | (np.diff(positions) != 0)
    matches.number = len(codes)
    group: npt.NDArray[np.int64] = np.cumsum(last) - last
    matches.acted = int(np.count_nonzero(actions[last][group] >= 0))
    counted = np.unique(actions[last], return_counts=True)
    matches.counts["matched"] = {
        int(index): int(rows) for index, rows in zip(*counted, strict=True) if index >= 0
    }
    matches.touched = {keys[code] for code in np.unique(codes[last & (actions >= 0)]).tolist()}
    matches.repeats_source = len(pc.unique(pairs[names.row])) < pairs.num_rows
    return not bool(last.all())


def _count_matches(matches: Matches, names: Names) -> bool:
    """Count the matches by a job. Returns whether several source rows match one target row."""
    from pyspark.sql import functions as fn

    by_row = matches.pairs.groupBy(names.file, names.position).agg(
        fn.count("*").alias("pairs"), fn.max(names.action).alias(names.action)
    )
    by_file = by_row.groupBy(names.file, names.action).agg(
        fn.count("*").alias("rows"), fn.sum("pairs").alias("pairs"), fn.max("pairs").alias("most")
    )
    duplicates = False
    for row in by_file.toArrow().to_pylist():
        matches.number += row["pairs"]
        duplicates = duplicates or row["most"] > 1
        index = row[names.action]
        if index is not None:
            matches.touched.add(row[names.file])
            matches.acted += row["pairs"]
            counts = matches.counts["matched"]
            counts[index] = counts.get(index, 0) + row["rows"]
    return duplicates


def _count_unmatched(
    matches: Matches,
    rows: DataFrame,
    keys: DataFrame,
    *,
    on: Sql,
    clauses: Sequence[MergeClause],
    names: Names,
    keep: bool,
) -> None:
    from pyspark.sql import functions as fn

    unmatched = rows.join(keys, as_column(on), "left_anti")
    chosen = unmatched.select(names.file, names.position, chosen_clause(clauses).alias(names.action))
    chosen = chosen.where(fn.col(names.action).isNotNull())
    if keep:
        chosen = matches.unmatched = chosen.persist()
    found = chosen.groupBy(names.file, names.action).count()
    counts = matches.counts["not_matched_by_source"]
    for row in found.toArrow().to_pylist():
        matches.touched.add(row[names.file])
        counts[row[names.action]] = counts.get(row[names.action], 0) + row["count"]


def unmatched_source(source: MergeSource, matches: Matches, clauses: MergeClauses, names: Names) -> DataFrame:
    """The source rows that a `not matched` clause inserts, with the clause's index in `names.action`."""
    from pyspark.sql import functions as fn

    rows = source.frame
    if matches.number:
        matched_rows = matches.pairs.select(names.row)
        if matches.number * 16 <= BROADCAST_BYTES:
            matched_rows = fn.broadcast(matched_rows)
        rows = rows.join(matched_rows, names.row, "left_anti").alias(source.alias)
    chosen = rows.withColumn(names.action, chosen_clause(clauses.not_matched))
    return chosen.where(fn.col(names.action).isNotNull())


def _duplicate_error(
    pairs: DataFrame, source: MergeSource, on: Sql, names: Names
) -> MergeDuplicateMatchError:
    """The error, with the keys of some source rows that match the same target row."""
    from pyspark.sql import functions as fn

    columns = _needed(source, [sql_text(on)])
    places = [names.file, names.position]
    ambiguous = pairs.groupBy(*places).agg(fn.min(names.row).alias(names.row), fn.count("*").alias("n"))
    sample = ambiguous.where("n > 1").select(names.row, "n").limit(SHOWN_KEYS)
    found: list[dict[str, Any]] = (
        source.frame.join(fn.broadcast(sample), names.row)
        .select("n", *[quoted(name) for name in columns])
        .toArrow()
        .to_pylist()
    )
    shown = []
    for row in found:
        source_rows = row.pop("n")
        shown.append(
            f"{', '.join(f'{name}={value}' for name, value in row.items())} ({source_rows} source rows)"
        )
    return MergeDuplicateMatchError(
        "Several source rows match the same target row, so the result of the merge is ambiguous.",
        cause=f"Keys with more than one source row: {'; '.join(sorted(shown))}.",
        fix="Keep one source row for each key (deduplicate), or narrow the condition. Nothing was written.",
    )


def _needed(source: MergeSource, strings: Sequence[str]) -> list[str]:
    """The source's columns that the SQL expressions may mention."""
    mentioned = words(strings)
    return [name for name in source.columns if name.casefold() in mentioned]


def deleting(clauses: Sequence[MergeClause]) -> list[int]:
    """The indexes of the DELETE clauses."""
    return [index for index, clause in enumerate(clauses) if clause.action is MergeAction.DELETE]
