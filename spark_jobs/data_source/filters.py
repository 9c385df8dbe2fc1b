"""Filters that Spark passes to a source in Python, as predicates of this library.

Spark passes them with `spark.sql.python.filterPushdown.enabled`. They choose files and rows here. Spark
applies all of them again, so that its own rules decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader

from delta_core.errors import DeltaError
from delta_core.expressions.ast import (
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
)
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve_predicate
from delta_core.schema.types import StructType

_COMPARISONS: Final = {
    datasource.EqualTo: ComparisonOperator.EQ,
    datasource.EqualNullSafe: ComparisonOperator.EQ_NULL_SAFE,
    datasource.GreaterThan: ComparisonOperator.GT,
    datasource.GreaterThanOrEqual: ComparisonOperator.GE,
    datasource.LessThan: ComparisonOperator.LT,
    datasource.LessThanOrEqual: ComparisonOperator.LE,
}
_PATTERNS: Final = {
    datasource.StringStartsWith: "{}%",
    datasource.StringEndsWith: "%{}",
    datasource.StringContains: "%{}%",
}


class FilterPush:
    """`pushFilters` of a reader, for sessions with and without the setting.

    Spark refuses a reader that overrides `pushFilters` in a session without the setting. It compares the
    method's function with its own, so this callable claims to be that one.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, push: Callable[[Sequence[Any]], None]) -> None:
        """Create it for the function that gets the filters."""
        self._push = push

    def __call__(self, filters: list[Any]) -> Iterable[Any]:
        """Pass the filters on. Spark applies all of them again."""
        self._push(filters)
        return filters


def condition_of(filters: Iterable[Any], schema: StructType) -> str | None:
    """The filters that have an equivalent here, as one condition in Spark's SQL; None without any.

    Args:
        filters: Spark's filters, all of which are true for the wanted rows.
        schema: the columns that they are about.
    """
    found = []
    for item in filters:
        expression = _expression(item)
        if expression is None:
            continue
        try:
            found.append(to_spark_sql(resolve_predicate(expression, schema)))
        except DeltaError:
            continue  # Spark applies it, as every filter
    return " AND ".join(f"({condition})" for condition in found) or None


def both(one: str | None, other: str | None) -> str | None:
    """The condition that is true where both are; None is always true."""
    if one is None or other is None:
        return other if one is None else one
    return f"({one}) AND ({other})"


def _expression(item: Any) -> Expression | None:
    if isinstance(item, datasource.Not):
        operand = _expression(item.child)
        return None if operand is None else Not(operand)
    if isinstance(item, datasource.IsNull):
        return IsNull(Column(tuple(item.attribute)))
    if isinstance(item, datasource.IsNotNull):
        return Not(IsNull(Column(tuple(item.attribute))))
    if isinstance(item, datasource.In):
        return In(Column(tuple(item.attribute)), tuple(Literal(value) for value in item.value))
    if (operator := _COMPARISONS.get(type(item))) is not None:
        return Comparison(operator, Column(tuple(item.attribute)), Literal(item.value))
    if (pattern := _PATTERNS.get(type(item))) is not None:
        escaped = item.value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return Like(Column(tuple(item.attribute)), pattern.format(escaped))
    return None
