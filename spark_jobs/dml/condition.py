"""The condition of a DELETE or UPDATE: a Spark expression over the table's rows, and what prunes its files.

Spark evaluates the condition with the session's settings. `delta_core` uses the same text to choose files, as
far as it has the same meaning there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import ConfigurationError, ExpressionError
from delta_core.expressions.ast import (
    TRUE,
    Arithmetic,
    Call,
    Comparison,
    Expression,
    Like,
    Literal,
)
from delta_core.expressions.columns import (
    conjunction,
    referenced_names,
    split_conjuncts,
    walk,
)
from delta_core.expressions.parse import parse
from delta_core.expressions.subqueries import has_subquery
from delta_core.expressions.typing import resolve_predicate
from delta_core.schema.types import StructType
from spark_jobs.dml.clauses import sql_text
from spark_jobs.dml.pruning import without_alias
from spark_jobs.dml.source import as_column
from spark_jobs.expressions.sql_semantics import SqlSemantics
from spark_jobs.schema import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from spark_jobs.dml.clauses import Sql

_OTHER_SIDE = "__deltaward_other_side"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCondition:
    """The condition of one statement.

    Attributes:
        column: the condition as Spark evaluates it; None for every row.
        text: the condition in the history; None for every row.
        reads: a predicate, resolved against the table's schema, that holds for every row that meets the
            condition; None when nothing is known, and for every row.
        is_exact: whether `reads` is true for exactly the rows that meet the condition, whenever it is
            evaluated. Then a second scan finds the same rows.
    """

    column: Column | None = None
    text: str | None = None
    reads: Expression | None = None
    is_exact: bool = True

    @property
    def strings(self) -> list[str]:
        """SQL text that names the columns of the condition."""
        return [] if self.text is None else [self.text]

    def uses_only(self, columns: tuple[str, ...]) -> bool:
        """Whether the log alone decides the condition, because it is over these partition columns only."""
        if self.column is None:
            return True
        if not self.is_exact or self.reads is None:
            return False
        return referenced_names(self.reads) <= set(columns)


def row_condition(
    spark: SparkSession, where: Sql | None, *, schema: StructType, alias: str | None, operation: str
) -> RowCondition:
    """The condition of a statement. Runs no job.

    Args:
        spark: the session.
        where: SQL text or a Column, over the table's columns, which may have the alias.
        schema: the table's schema.
        alias: the table's alias.
        operation: the statement, for errors.

    Raises:
        ConfigurationError: the condition is neither text nor a Column, or has a subquery.
        ExpressionError: Spark refuses the condition, or it is not deterministic.
    """
    if where is None:
        return RowCondition()
    refuse_subqueries(where, "condition", operation)
    text = sql_text(where)
    column = require_condition(spark, where, schema=schema, alias=alias, operation=operation)
    meaning = SqlSemantics.of(spark)
    terms = _terms(text, schema, alias) if meaning.reads(text) else None
    if terms is None:
        return RowCondition(column=column, text=text, is_exact=False)
    # As a string, a Column shows its strings like names, so that only some terms have one reading.
    kept = [
        term
        for term in terms
        if meaning.agrees(term, schema) and (isinstance(where, str) or _is_unambiguous(term))
    ]
    reads = conjunction(kept)
    is_exact = isinstance(where, str) and len(kept) == len(terms)
    if reads == TRUE and is_exact:
        return RowCondition(text=text)
    return RowCondition(
        column=column,
        text=text,
        reads=None if reads == TRUE else reads,
        is_exact=is_exact,
    )


def require_condition(
    spark: SparkSession, where: Sql, *, schema: StructType, alias: str | None, operation: str
) -> Column:
    """The condition as a column, which Spark can resolve over the table's columns.

    Raises:
        ExpressionError: Spark refuses the condition, or it is not deterministic.
    """
    from pyspark.errors import PySparkException

    try:
        column = as_column(where)
        rows = spark.createDataFrame([], to_spark(schema))
        other = spark.createDataFrame([], f"`{_OTHER_SIDE}` int")
        # Spark refuses an expression in a join condition that is not deterministic.
        _ = (rows if alias is None else rows.alias(alias)).join(other, column).columns
    except PySparkException as error:
        raise ExpressionError(
            f"The condition of the {operation} is not valid.",
            cause=str(error).splitlines()[0][:500],
            fix="Use the table's columns by name, and no random or other non-deterministic function.",
        ) from error
    return column


def refuse_subqueries(value: Sql, what: str, operation: str) -> None:
    """Refuse SQL text with a subquery, and what is neither text nor a Column.

    Raises:
        ConfigurationError: the value is of another type, or has a subquery.
    """
    from pyspark.sql import Column

    if not isinstance(value, str | Column):
        raise ConfigurationError(
            f"The {what} of the {operation} cannot be a {type(value).__name__}.",
            fix="Pass Spark SQL as a string, or a Column.",
        )
    if isinstance(value, str) and has_subquery(value):
        raise ConfigurationError(
            f"The {what} of the {operation} has a subquery.",
            cause=f"{operation} evaluates expressions over the rows of its table only.",
            fix="Use a MERGE with the subquery's rows as the source, or compute the values first.",
        )


def _terms(text: str, schema: StructType, alias: str | None) -> list[Expression] | None:
    """The conjuncts, resolved; None when delta_core cannot parse or resolve one of them."""
    try:
        parsed = parse(text)
        if alias is not None:
            parsed = without_alias(parsed, alias, schema)
        return list(split_conjuncts(resolve_predicate(parsed, schema)))
    except ExpressionError:
        return None


def _is_unambiguous(term: Expression) -> bool:
    """Whether a Column as a string has one reading: a name compared with something that has none."""
    for part in walk(term):
        if isinstance(part, Arithmetic | Call | Like):
            return False
        if isinstance(part, Literal) and (part.value is None or isinstance(part.value, str)):
            return False
        if isinstance(part, Comparison) and referenced_names(part.left) and referenced_names(part.right):
            return False
    return True
