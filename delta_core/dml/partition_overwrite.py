"""Dynamic partition overwrite: the new rows determine the partitions that are replaced.

It is a replaceWhere with a computed predicate that matches exactly the rows of the partitions with new rows.
So other partitions are neither read nor removed, and another writer's commit to them does not conflict.
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
    """Refuse an unpartitioned table, in which all rows would be replaced.

    Raises:
        ConfigurationError: the table has no partition columns.
    """
    if not partition_columns:
        raise ConfigurationError(
            "The table has no partitions to replace.",
            cause="The table is not partitioned.",
            fix="Omit partition_overwrite_mode to replace all rows, or pass a predicate.",
        )


def partitions_predicate(
    adds: Iterable[AddFile],
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    mapping: ColumnMapping,
) -> Expression:
    """The predicate that is true for exactly the rows of the partitions of some files. FALSE without files.

    Args:
        adds: the files. Their partition values are by physical name.
        schema: the table's schema.
        partition_columns: at least one name, as in the schema.
        mapping: the column mapping, which gives the physical names.

    Raises:
        ConfigurationError: the table is not partitioned.
        CorruptLogError: a file lacks a partition value, or its value does not fit the column's type.
    """
    require_partitioned(partition_columns)
    fields = [field for name in partition_columns if (field := schema.find(name)) is not None]
    partitions = {
        tuple(value_of(add.partition_values, mapping.physical_name(field)) for field in fields)
        for add in adds
    }
    # Partitions that differ only in the last column become one list of its values.
    *first, last = fields
    groups: dict[tuple[str | None, ...], list[str | None]] = {}
    for values in sorted(partitions, key=repr):
        groups.setdefault(values[:-1], []).append(values[-1])
    return disjunction(
        conjunction(
            [
                *(_any_of(field, [string]) for field, string in zip(first, values, strict=True)),
                _any_of(last, strings),
            ]
        )
        for values, strings in groups.items()
    )


def _any_of(field: StructField, strings: Sequence[str | None]) -> Expression:
    column, kind = Column((field.name,)), field.data_type
    terms: list[Expression] = []
    literals = [Literal(parse(string, kind), kind) for string in strings if string not in (None, "")]
    if len(literals) < len(strings):
        terms.append(IsNull(column))
    if kind in (FLOAT, DOUBLE):
        terms += [Comparison(ComparisonOperator.EQ, column, literal) for literal in literals]
    elif literals:
        terms.append(In(column, tuple(literals)))
    return disjunction(terms)
