"""The names in the conditions and values of a MERGE: columns of the target and of the source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa

from delta_core.data.row_batch import Array, Columns
from delta_core.errors import ConfigurationError, ExpressionError
from delta_core.expressions.ast import Column, Expression
from delta_core.expressions.columns import map_columns, referenced_columns
from delta_core.expressions.parse import parse
from delta_core.schema.types import StructField, StructType

Struct: TypeAlias = "pa.StructArray"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeNames:
    """Resolves names with and without an alias.

    Attributes:
        target_alias, source_alias: the aliases. They differ without regard to case.
        target, source: the columns of both sides.
        now: the time of the statement, for functions of the present time.
    """

    target_alias: str
    source_alias: str
    target: StructType
    source: StructType
    now: dt.datetime

    def __post_init__(self) -> None:
        """Refuse equal aliases."""
        if self.target_alias.casefold() == self.source_alias.casefold():
            raise ConfigurationError(
                f"The table and the source have the same alias {self.target_alias!r}.",
                fix="Give the table and the source different aliases.",
            )

    @property
    def schema(self) -> StructType:
        """The rows on which expressions are evaluated: a struct of each side, named by its alias."""
        return StructType(
            (
                StructField(name=self.target_alias, data_type=self.target),
                StructField(name=self.source_alias, data_type=self.source),
            )
        )

    def parsed(self, value: Any, *, target: bool = True, source: bool = True) -> Expression:
        """An expression whose columns start with an alias; not resolved.

        Args:
            value: SQL text or an expression tree.
            target: whether the expression may refer to the target's columns.
            source: whether it may refer to the source's columns.

        Raises:
            ExpressionError: the SQL cannot be parsed, or a name is unknown, ambiguous or not allowed here.
        """
        expression: Any = parse(value, now=self.now) if isinstance(value, str) else value
        if not isinstance(expression, Expression):
            raise ExpressionError(
                f"{value!r} is not an expression.",
                cause=f"It is of type {type(value).__name__}.",
                fix="Write the expression as Spark SQL.",
            )
        sides = [
            (alias, schema, allowed)
            for alias, schema, allowed in (
                (self.target_alias, self.target, target),
                (self.source_alias, self.source, source),
            )
        ]

        def qualified(column: Column) -> Expression:
            first, rest = column.path[0], column.path[1:]
            for alias, schema, allowed in sides:
                if rest and first.casefold() == alias.casefold() and schema.find(rest[0]) is not None:
                    if not allowed:
                        _refuse_side(column, alias)
                    return Column((alias, *rest))
            found = [alias for alias, schema, allowed in sides if allowed and schema.find(first) is not None]
            if len(found) == 1:
                return Column((found[0], *column.path))
            if found:
                raise ExpressionError(
                    f"The column {first} is ambiguous.",
                    cause="The table and the source both have a column of this name.",
                    fix=f"Write {self.target_alias}.{first} or {self.source_alias}.{first}.",
                )
            visible = "; ".join(
                f"{alias} has {', '.join(schema.names[:50])}" for alias, schema, allowed in sides if allowed
            )
            raise ExpressionError(
                f"Column {'.'.join(column.path)} does not exist.",
                cause=f"{visible}.",
                fix="Use an existing name; quote names that contain dots or spaces with backticks.",
            )

        return map_columns(expression, qualified)

    def columns_of(self, alias: str, expressions: Iterable[Expression]) -> tuple[str, ...]:
        """The top-level columns of one side in expressions of `parsed`, in the order of the side's schema."""
        used = {
            path[1].casefold()
            for expression in expressions
            for path in referenced_columns(expression)
            if path[0] == alias and len(path) > 1
        }
        schema = self.target if alias == self.target_alias else self.source
        return tuple(name for name in schema.names if name.casefold() in used)

    def without_alias(self, expression: Expression) -> Expression:
        """An expression over one side, in the names of that side."""
        return map_columns(expression, lambda column: Column(column.path[1:]))

    def data(self, num_rows: int, *, target: Struct | None, source: Struct | None) -> pa.RecordBatch:
        """Rows on which expressions of `parsed` are evaluated. An unused side may be left out (None)."""
        arrays: list[pa.Array] = [pa.nulls(num_rows)]
        names = [""]
        for alias, struct in ((self.target_alias, target), (self.source_alias, source)):
            if struct is not None:
                arrays.append(struct)
                names.append(alias)
        return pa.RecordBatch.from_arrays(arrays, names=names)


def struct_of(batch: Columns, names: Iterable[str]) -> Struct | None:
    """Columns of a batch as one struct array without copies; None without names."""
    arrays, fields = [], []
    for name in names:
        column = one_array(batch.column(name))
        arrays.append(column)
        fields.append(pa.field(name, column.type))
    return pa.StructArray.from_arrays(arrays, fields=fields) if arrays else None


def one_array(column: Array) -> pa.Array:
    """A column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _refuse_side(column: Column, alias: str) -> NoReturn:
    raise ExpressionError(
        f"{'.'.join(column.path)} cannot be used here.",
        cause=f"The clause applies to rows that have no row of {alias}.",
        fix="Use columns of the other side only.",
    )
