"""The assignments of an UPDATE: new values of columns, computed from the old row.

A value is converted to the type of its column by Spark's store assignment rules (ANSI): between numbers,
between dates and timestamps, and to strings. A value that does not fit fails the statement. Constants are
converted to the column's type as in predicates.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.data.row_batch import RowBatch
from delta_core.data.steps.defaults import DefaultsStep
from delta_core.data.steps.step import with_column
from delta_core.data.write_plan import WritePlan
from delta_core.dml.python_values import python_scalar
from delta_core.errors import ConfigurationError, ExpressionError, SchemaMismatchError
from delta_core.expressions.arithmetic import cast_value
from delta_core.expressions.ast import Cast, Column, Expression, Literal
from delta_core.expressions.columns import referenced_names
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.literals import DATETIMES, convert_literal, is_numeric, literal_type
from delta_core.expressions.parse import parse
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import find_column, resolve, type_of
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.column_paths import Path, display_path, is_related
from delta_core.schema.conversion import convert_array
from delta_core.schema.enforcement import type_problems
from delta_core.schema.types import (
    BOOLEAN,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructType,
)

Updates: TypeAlias = "Mapping[str | Sequence[str], Any]"
"""New values by column name, or by the names on the way to a nested field."""

_NESTED = (StructType, ArrayType, MapType)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """The new value of a column or of a nested field.

    Attributes:
        path: the canonical path.
        data_type: the type of the column or field.
        expression: an expression on the old row, of that type or a type that Arrow widens to it. None for a
            constant.
        constant: the constant in the column's Arrow type; None for an expression.
    """

    path: Path
    data_type: DataType
    expression: Expression | None = None
    constant: pa.Scalar | None = None

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        target = type_to_arrow(self.data_type)
        if self.expression is None:
            not_null = self.constant is not None and self.constant.is_valid
            return pa.repeat(self.constant, rows.num_rows) if not_null else pa.nulls(rows.num_rows, target)
        try:
            values = evaluate(self.expression, rows)
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            if isinstance(values, pa.ChunkedArray):
                values = pa.concat_arrays(values.chunks)
            if values.type == target:
                return values
            # Decimal arithmetic returns wider decimals than the type of the expression.
            nested = isinstance(self.data_type, _NESTED) or self.data_type == VARIANT
            return convert_array(values, target) if nested else cast_value(values, target)
        except (ExpressionError, pa.ArrowInvalid) as error:
            raise ExpressionError(
                f"A value of {to_spark_sql(self.expression)} does not fit {display_path(self.path)}.",
                cause=str(error),
                fix=f"Assign values that fit the type {self.data_type}, or exclude these rows by the "
                "predicate.",
            ) from error


class Assignments:
    """The assignments of one statement.

    Attributes:
        columns: the table's columns that are assigned as a whole or in part.
        unread: the columns whose old values no new value depends on.
    """

    def __init__(
        self,
        updates: Updates | None,
        new_values: Updates | None,
        *,
        plan: WritePlan,
        now_us: int,
    ) -> None:
        """Resolve the assignments against the table.

        Args:
            updates: SQL text of Spark (`DEFAULT` is the column's default) or an expression tree by column. A
                value that is neither is a constant.
            new_values: Python values by column. A string is a constant, not SQL.
            plan: the write plan of the table.
            now_us: the statement's time in microseconds since the epoch.

        Raises:
            ConfigurationError: nothing is assigned, or a column is assigned twice.
            ExpressionError: a column does not exist, an expression cannot be parsed, or its type cannot be
                stored in the column.
            SchemaMismatchError: an identity column is assigned.
        """
        self._plan = plan
        self._partitions = frozenset(plan.partition_columns)
        self._defaults = DefaultsStep(plan, now_us=now_us)
        self._now = _EPOCH + dt.timedelta(microseconds=now_us)
        given = [
            *((key, value, True) for key, value in _items(updates, "updates")),
            *((key, value, False) for key, value in _items(new_values, "new_values")),
        ]
        if not given:
            raise ConfigurationError("The UPDATE assigns no column.", fix="Pass updates, new_values or both.")
        self._values = tuple(self._value(key, value, may_be_sql=sql) for key, value, sql in given)
        for index, value in enumerate(self._values):
            for other in self._values[:index]:
                if is_related(value.path, other.path):
                    raise ConfigurationError(
                        f"{display_path(value.path)} and {display_path(other.path)} are both assigned.",
                        cause="They are the same column, or one of them is a field of the other.",
                        fix="Assign each column once.",
                    )
        self.columns = frozenset(value.path[0] for value in self._values)
        identity = next((item.name for item in plan.identity if item.name in self.columns), None)
        if identity is not None:
            raise SchemaMismatchError(
                f"The identity column {identity} cannot be assigned.",
                cause="The table generates its values, and each row keeps its value.",
                fix="Remove the column from the assignments.",
            )
        generated = {item.name for item in plan.generated}
        self._recomputed = frozenset(generated - self.columns)
        expressions = [value.expression for value in self._values if value.expression is not None]
        read = {name for expression in expressions for name in referenced_names(expression)}
        whole = {value.path[0] for value in self._values if len(value.path) == 1}
        self.unread = frozenset((whole | self._recomputed) - read)

    def apply(self, batch: RowBatch) -> RowBatch:
        """The rows after the statement, for `RowPipeline.updated_rows`. Generated columns have old values.

        Row ids are kept. Row commit versions become the version of the commit.

        Raises:
            ExpressionError: an expression fails on a row, or its value does not fit the column's type.
        """
        rows = batch.columns
        assert isinstance(rows, pa.RecordBatch)
        changed = rows
        for field in self._plan.schema:
            values = [value for value in self._values if value.path[0] == field.name]
            if values:
                column = _assigned(rows.column(field.name), field.data_type, values, 1, rows)
                changed = with_column(changed, field, column, is_partition=field.name in self._partitions)
        hidden = batch.hidden
        if hidden is not None:
            versions = pa.nulls(batch.num_rows, pa.int64())
            hidden = type(hidden)(row_ids=hidden.row_ids, row_commit_versions=versions)
        return RowBatch(columns=changed, absent=self._recomputed, hidden=hidden)

    def _value(self, key: object, value: Any, *, may_be_sql: bool) -> _Value:
        path, data_type = find_column(_path(key, self._plan.schema), self._plan.schema)
        if may_be_sql and isinstance(value, str):
            if value.strip().upper() == "DEFAULT" and self._plan.schema.find("default") is None:
                return _Value(path=path, data_type=data_type, constant=self._default(path, data_type))
            value = parse(value, now=self._now)
        if isinstance(value, Expression):
            expression = _stored(value, path, data_type, self._plan.schema)
            return _Value(path=path, data_type=data_type, expression=expression)
        return _Value(
            path=path, data_type=data_type, constant=python_scalar(value, data_type, display_path(path))
        )

    def _default(self, path: Path, data_type: DataType) -> pa.Scalar:
        if len(path) == 1 and path[0] in self._defaults.strings:
            return self._defaults.value(path[0])
        return pa.nulls(1, type_to_arrow(data_type))[0]


def _items(given: Updates | None, what: str) -> Iterable[tuple[object, Any]]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"The argument `{what}` cannot be a {type(given).__name__}.",
            fix="Pass a mapping from columns to new values.",
        )
    return given.items()


def _path(key: object, schema: StructType) -> Path:
    """The names on the way to a column: a sequence of names, or a string that is a name or is parsed."""
    if not isinstance(key, str):
        if isinstance(key, Sequence) and key and all(isinstance(part, str) for part in key):
            return tuple(key)
        raise ConfigurationError(
            f"{key!r} does not name a column.", fix="Pass a string such as 'a.b', or a tuple of names."
        )
    column = schema.find(key)
    if column is not None and "." not in key:
        return (column.name,)
    try:
        parsed = parse(key)
    except ExpressionError:
        parsed = None
    path = parsed.path if isinstance(parsed, Column) else (key,)
    if column is not None and len(path) > 1 and _exists(path, schema):
        raise ConfigurationError(
            f"{key!r} is ambiguous.",
            cause="It names a column, and also a field of another column.",
            fix=f"Pass {path!r} for the field, or {(column.name,)!r} for the column.",
        )
    return (column.name,) if column is not None else path


def _exists(path: Path, schema: StructType) -> bool:
    try:
        find_column(path, schema)
    except ExpressionError:
        return False
    return True


def _stored(expression: Expression, path: Path, target: DataType, schema: StructType) -> Expression:
    """The expression, converted so that its value can be stored in a column of the type."""
    resolved = resolve(expression, schema)
    if isinstance(resolved, Literal):
        if resolved.value is None:
            return Literal(None)
        resolved = convert_literal(resolved, target, display_path(path))
        source = literal_type(resolved)
    else:
        source = type_of(resolved, schema)
    if source in (target, VOID):
        return resolved
    if isinstance(source, _NESTED) and not type_problems(target, source):
        return resolved
    if not _may_store(source, target):
        raise ExpressionError(
            f"{to_spark_sql(expression)} cannot be assigned to {display_path(path)}.",
            cause=f"The expression has the type {source}, and the column has the type {target}.",
            fix="CAST the expression to the column's type.",
        )
    return resolve(Cast(resolved, target), schema)


def _may_store(source: DataType, target: DataType) -> bool:
    """Whether Spark stores one type as another without an explicit cast. For types without nested fields."""
    if is_numeric(source):
        return is_numeric(target) or target == STRING
    if source in DATETIMES:
        return target in DATETIMES or target == STRING
    return source == BOOLEAN and target == STRING


def _assigned(
    column: pa.Array, data_type: DataType, values: Sequence[_Value], depth: int, rows: pa.RecordBatch
) -> pa.Array:
    """A column with new values for itself or for its fields.

    A null struct becomes a struct when one of its fields is assigned. Its other fields keep their values, or
    are null.
    """
    if len(values[0].path) == depth:
        return values[0].of(rows)
    assert isinstance(data_type, StructType)
    children = []
    for field, child in zip(data_type, _fields(column), strict=True):
        nested = [value for value in values if value.path[depth] == field.name]
        if nested:
            child = _assigned(child, field.data_type, nested, depth + 1, rows)
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=list(column.type))


def _fields(column: pa.StructArray) -> Iterator[pa.Array]:
    """The fields of a struct column; a field is null where the struct is null."""
    for index in range(column.type.num_fields):
        yield pc.struct_field(column, [index])
