"""The first phase of a MERGE: which rows match, what becomes of them, which files they are in.

The condition and the matched clauses' conditions are decided here, once, on the columns that they name;
the second phase finds the rows again by file and position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delta_core.errors import MergeDuplicateMatchError
from delta_core.expressions.ast import TRUE, Expression
from spark_jobs.dml.clauses import MergeAction, MergeClause, MergeClauses, conditions, sql_text, words
from spark_jobs.dml.source import MergeSource, Names, as_column, estimated_bytes
from spark_jobs.dml.target import TargetFiles
from spark_jobs.predicates import to_column
from spark_jobs.writer.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.dml.clauses import Sql

BROADCAST_BYTES = 64 << 20
"""A side that is smaller goes to every task; a larger one is left to Spark's own choice of join."""

SHOWN_KEYS = 5


@dataclass(slots=True, kw_only=True)
class Matches:
    """What the first phase found.

    Attributes:
        pairs: (source row, file, position, action) of every match; kept in memory or on disk.
        number: how many.
        touched: keys of the files with a row that changes.
        counts: for `matched` and `not_matched_by_source`, rows by the clause that takes them.
    """

    pairs: DataFrame
    number: int = 0
    touched: set[str] = field(default_factory=set)
    counts: dict[str, dict[int, int]] = field(
        default_factory=lambda: {"matched": {}, "not_matched_by_source": {}}
    )

    def rows(self, section: str, clauses: Sequence[MergeClause], kind: str) -> int:
        """How many rows of a section an action of this kind takes."""
        found = self.counts[section]
        return sum(found.get(index, 0) for index, c in enumerate(clauses) if c.action.kind == kind)


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
) -> Matches:
    """Join the source with the target's key columns. The caller unpersists `pairs`.

    Raises:
        MergeDuplicateMatchError: several source rows match one target row, and it matters which.
        pyspark.errors.PySparkException: Spark failed.
    """
    from pyspark.sql import functions as fn

    rows = target.scan(spark, names)
    if match_predicate != TRUE:
        rows = rows.where(to_column(match_predicate, target.schema))
    rows = rows.alias(target_alias)
    needed = _needed(source, [sql_text(on), *conditions(clauses.matched)])
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
                target.scan(spark, names).alias(target_alias),
                keys.alias(source.alias),
                on=on,
                clauses=clauses.not_matched_by_source,
                names=names,
            )
    except BaseException:
        pairs.unpersist()
        raise
    return matches


def chosen_clause(clauses: Sequence[MergeClause]) -> Column:
    """The number of the first clause whose condition is true, null for none."""
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
) -> None:
    from pyspark.sql import functions as fn

    alone = rows.join(keys, as_column(on), "left_anti")
    chosen = alone.select(names.file, chosen_clause(clauses).alias(names.action))
    found = chosen.where(fn.col(names.action).isNotNull()).groupBy(names.file, names.action).count()
    counts = matches.counts["not_matched_by_source"]
    for row in found.toArrow().to_pylist():
        matches.touched.add(row[names.file])
        counts[row[names.action]] = counts.get(row[names.action], 0) + row["count"]


def unmatched_source(source: MergeSource, matches: Matches, clauses: MergeClauses, names: Names) -> DataFrame:
    """The source rows that a `not matched` clause inserts, with the clause's number in `names.action`."""
    from pyspark.sql import functions as fn

    rows = source.frame
    if matches.number:
        known = matches.pairs.select(names.row)
        if matches.number * 16 <= BROADCAST_BYTES:
            known = fn.broadcast(known)
        rows = rows.join(known, names.row, "left_anti").alias(source.alias)
    chosen = rows.withColumn(names.action, chosen_clause(clauses.not_matched))
    return chosen.where(fn.col(names.action).isNotNull())


def _duplicate_error(
    pairs: DataFrame, source: MergeSource, on: Sql, names: Names
) -> MergeDuplicateMatchError:
    """The error, with keys of some source rows that match the same target row."""
    from pyspark.sql import functions as fn

    columns = _needed(source, [sql_text(on)])
    places = [names.file, names.position]
    twice = pairs.groupBy(*places).agg(fn.min(names.row).alias(names.row), fn.count("*").alias("n"))
    some = twice.where("n > 1").select(names.row, "n").limit(SHOWN_KEYS)
    found: list[dict[str, Any]] = (
        source.frame.join(fn.broadcast(some), names.row)
        .select("n", *[quoted(name) for name in columns])
        .toArrow()
        .to_pylist()
    )
    shown = []
    for row in found:
        many = row.pop("n")
        shown.append(f"{', '.join(f'{name}={value}' for name, value in row.items())} ({many} source rows)")
    return MergeDuplicateMatchError(
        "Several source rows match the same target row, and the merge cannot tell which one counts.",
        cause=f"Keys with more than one source row: {'; '.join(sorted(shown))}",
        fix="Keep one source row for each key (deduplicate), or narrow the condition; nothing was written",
    )


def _needed(source: MergeSource, strings: Sequence[str]) -> list[str]:
    """The source's columns that the texts may name."""
    mentioned = words(strings)
    return [name for name in source.columns if name.casefold() in mentioned]


def deleting(clauses: Sequence[MergeClause]) -> list[int]:
    """The numbers of the clauses that delete."""
    return [index for index, clause in enumerate(clauses) if clause.action is MergeAction.DELETE]
