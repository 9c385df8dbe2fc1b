"""Dynamic partition overwrite: the new rows name the partitions that they replace.

It is a replaceWhere whose predicate is worked out: exactly the rows of the partitions in which there are new
ones. So other partitions are neither read nor removed, and another writer's commit to them is no conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delta_core.actions import AddFile
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import (
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Literal,
)
from delta_core.expressions.columns import conjunction, disjunction
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.partition_values import parse, value_of
from delta_core.schema.types import DOUBLE, FLOAT, StructField, StructType


def require_partitioned(partition_columns: Sequence[str]) -> None:
    """Refuse a table without partitions: all of its rows would go.

    Raises:
        ConfigurationError: there are none.
    """
    if not partition_columns:
        raise ConfigurationError(
            "The new rows name no partitions to replace.",
            cause="The table is not partitioned.",
            fix="Leave partition_overwrite_mode out to replace all rows, or pass a predicate.",
        )


def partitions_predicate(
    adds: Iterable[AddFile],
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    mapping: ColumnMapping,
) -> Expression:
    """The predicate that is true for exactly the rows of the partitions of some files; FALSE for no file.

    Args:
        adds: the files; partition values are by physical name.
        schema: the table's schema.
        partition_columns: names as in the schema, at least one.
        mapping: what partition values call the columns.

    Raises:
        ConfigurationError: the table is not partitioned.
        CorruptLogError: a file lacks a partition value, or has one that is not of the column's type.
    """
    require_partitioned(partition_columns)
    fields = [field for name in partition_columns if (field := schema.find(name)) is not None]
    named = {
        tuple(value_of(add.partition_values, mapping.physical_name(field)) for field in fields)
        for add in adds
    }
    # Partitions that differ in the last column alone are one list of its values.
    *first, last = fields
    groups: dict[tuple[str | None, ...], list[str | None]] = {}
    for values in sorted(named, key=repr):
        groups.setdefault(values[:-1], []).append(values[-1])
    return disjunction(
        conjunction(
            [
                *(_any_of(field, [text]) for field, text in zip(first, values, strict=True)),
                _any_of(last, strings),
            ]
        )
        for values, strings in groups.items()
    )


def _any_of(field: StructField, strings: Sequence[str | None]) -> Expression:
    column, kind = Column((field.name,)), field.data_type
    terms: list[Expression] = []
    known = [Literal(parse(text, kind), kind) for text in strings if text not in (None, "")]
    if len(known) < len(strings):
        terms.append(IsNull(column))
    if kind in (FLOAT, DOUBLE):
        terms += [Comparison(ComparisonOperator.EQ, column, one) for one in known]
    elif known:
        terms.append(In(column, tuple(known)))
    return disjunction(terms)
