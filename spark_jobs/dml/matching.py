"""The first phase of a MERGE: the matching rows, the clause for each, and the files that contain them.

This phase evaluates the merge condition and the conditions of the matched clauses, once, and reads only the
columns that these name. The second phase finds the rows again by file and position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delta_core.errors import MergeDuplicateMatchError
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.columns import referenced_names
from delta_core.jobs.params.merge_clauses import MergeAction
from spark_jobs.dml.clauses import MergeClause, MergeClauses, conditions, sql_text, words
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
    """

    pairs: DataFrame
    number: int = 0
    acted: int = 0
    unmatched: DataFrame | None = None
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

    def changed_places(self, names: Names) -> DataFrame:
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
    keeps_unmatched: bool = False,
) -> Matches:
    """Join the source with the target's key columns. The caller unpersists the result.

    `match_predicate` is true for every target row that can match. With `keeps_unmatched` the rows of the
    `not matched by source` clauses are kept, not only counted.

    Raises:
        MergeDuplicateMatchError: several source rows match one target row, and the clauses do not allow it.
        pyspark.errors.PySparkException: Spark failed.
    """
    from pyspark.sql import functions as fn

    strings = [sql_text(on), *conditions(clauses.matched)]
    rows = target.scan(spark, names, strings=[*strings, *map(quoted, referenced_names(match_predicate))])
    if match_predicate != TRUE:
        rows = rows.where(to_column(match_predicate, target.schema))
    rows = rows.alias(target_alias)
    needed = _needed(source, strings)
    keys = source.frame.select(names.row, *[quoted(name) for name in needed])
    if estimated_bytes(source.schema, needed, source.rows) <= BROADCAST_BYTES:
        keys = fn.broadcast(keys)
    joined = rows.join(keys.alias(source.alias), as_column(on), "inner")
    pairs = joined.select(
        names.row, names.file, names.position, chosen_clause(clauses.matched).alias(names.action)
    ).persist()
    matches = Matches(pairs=pairs)
    try:
        _count_matches(matches, source, on=on, clauses=clauses, names=names)
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
                keep=keeps_unmatched,
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


def _count_matches(
    matches: Matches, source: MergeSource, *, on: Sql, clauses: MergeClauses, names: Names
) -> None:
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
    if duplicates and not clauses.allows_many_matches:
        raise _duplicate_error(matches.pairs, source, on, names)


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
