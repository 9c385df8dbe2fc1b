"""Defaults of columns (PROTOCOL.md, "Default Columns").

A row without a value for a column gets the column's default; an explicit null stays null. Existing rows never
get the default, so a column cannot be added with one: the default is set after the column was added.

A default is a constant expression, or a function of the statement's time in UTC: `current_timestamp()`,
`now()`, `current_date()`, `curdate()`, `localtimestamp()`. All rows of one write get the same time.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_core.errors import ExpressionError, SchemaError
from delta_core.expressions.ast import Cast, Comparison, ComparisonOperator, Expression
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.literals import DATETIMES, FLOATING, is_numeric
from delta_core.expressions.parse import parse_value
from delta_core.expressions.typing import resolve, type_of
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.column_paths import Path, display_path, find_path, update_field, walk_fields
from delta_core.schema.field_metadata import (
    CURRENT_DEFAULT_KEY,
    EXISTS_DEFAULT_KEY,
    GENERATION_KEY,
    is_identity,
    with_metadata,
    without_metadata,
)
from delta_core.schema.types import BOOLEAN, STRING, VARIANT, VOID, DataType, StructField, StructType
from delta_core.table_features.sql_names import Word, replace_words

_EPOCH = dt.datetime(1970, 1, 1)
_NO_COLUMNS = StructType(())
_SOME_TIME_MS = 1_700_000_000_000

_TIMES = {
    "current_timestamp": "TIMESTAMP '{time}+00:00'",
    "now": "TIMESTAMP '{time}+00:00'",
    "current_date": "DATE '{date}'",
    "curdate": "DATE '{date}'",
    "localtimestamp": "CAST('{time}' AS TIMESTAMP_NTZ)",
}
_ONLY_CALLED = frozenset({"now", "curdate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefault:
    """The default of a column.

    Attributes:
        name: the column's name.
        data_type: the column's type.
        text: the expression as stored in the table.
    """

    name: str
    data_type: DataType
    text: str

    def value(self, *, now_ms: int) -> pa.Scalar:
        """The value for the rows of one write.

        Args:
            now_ms: the time of the write, as milliseconds since 1970 in UTC.

        Returns:
            A scalar of the column's Arrow type; null where the default is null.

        Raises:
            ExpressionError: the expression is not supported, for example because of an unknown function, or
                its value does not fit the column.
        """
        try:
            expression = parse_value(replace_words(self.text, _time_at(now_ms)), _NO_COLUMNS)
            data_type = type_of(expression, _NO_COLUMNS)
        except ExpressionError as error:
            raise self._error(f"{error.problem.rstrip('.')}. {error.cause}") from error
        if data_type == VOID:
            return pa.scalar(None, type_to_arrow(self.data_type))
        if not _assignable(data_type, self.data_type):
            raise self._error(f"It is of type {data_type}, and the column is of type {self.data_type}.")
        return self._converted(expression, data_type)

    def _converted(self, expression: Expression, data_type: DataType) -> pa.Scalar:
        if data_type == self.data_type:
            return self._evaluated(expression)
        cast = resolve(Cast(expression, self.data_type), _NO_COLUMNS)
        value = self._evaluated(cast)
        if self.data_type in FLOATING:
            before = self._evaluated(expression).as_py()
            fits = value.as_py() is None or not math.isfinite(before) or math.isfinite(value.as_py())
        elif is_numeric(self.data_type):
            same = Comparison(ComparisonOperator.EQ_NULL_SAFE, expression, cast)
            fits = self._evaluated(resolve(same, _NO_COLUMNS)).as_py()
        else:
            fits = True
        if not fits:
            raise self._error(f"The column is of type {self.data_type}, which cannot represent the value.")
        return value

    def _evaluated(self, expression: Expression) -> pa.Scalar:
        try:
            return evaluate(expression, pa.table({"row": [0]}))[0]
        except ExpressionError as error:
            raise self._error(f"{error.problem.rstrip('.')}. {error.cause}") from error

    def _error(self, cause: str) -> ExpressionError:
        return ExpressionError(
            f"Column {self.name} cannot have the default {self.text}.",
            cause=cause,
            fix="Use a constant of the column's type, with strings in single quotes such as 'new', or "
            "current_timestamp() or current_date().",
        )


def column_defaults(schema: StructType) -> tuple[ColumnDefault, ...]:
    """The defaults of a table's columns, in the schema's order; not parsed, since most writes need none.

    Raises:
        SchemaError: a default is not a string.
    """
    return tuple(_default_of(field) for field in schema if CURRENT_DEFAULT_KEY in field.metadata)


def set_default(schema: StructType, column: Sequence[str], text: str) -> StructType:
    """Set the default of a column, for later rows.

    Raises:
        SchemaEvolutionError: the column does not exist.
        SchemaError: the column cannot have a default: it is nested, generated, an identity column, or a
            variant column whose default is not null.
        ExpressionError: see `ColumnDefault.value`.
    """
    path = find_path(schema, column)

    def defaulted(field: StructField) -> StructField:
        changed = with_metadata(field, {CURRENT_DEFAULT_KEY: text.strip()})
        _validate(path, changed)
        return changed

    return update_field(schema, path, defaulted)


def drop_default(schema: StructType, column: Sequence[str]) -> StructType:
    """Remove the default of a column; a column without a default stays unchanged.

    Raises:
        SchemaEvolutionError: the column does not exist.
    """
    keys = (CURRENT_DEFAULT_KEY, EXISTS_DEFAULT_KEY)
    return update_field(schema, column, lambda field: without_metadata(field, keys))


def validate_defaults(schema: StructType) -> None:
    """Check the defaults of a new table, or of a table whose schema changes.

    Raises:
        SchemaError, ExpressionError: see `set_default`.
    """
    for path, field in walk_fields(schema):
        if CURRENT_DEFAULT_KEY in field.metadata:
            _validate(path, field)


def _validate(path: Path, field: StructField) -> None:
    if len(path) > 1:
        raise _invalid(path, "It is within another column.")
    if GENERATION_KEY in field.metadata or is_identity(field):
        raise _invalid(path, "Its values are generated.")
    value = _default_of(field).value(now_ms=_SOME_TIME_MS)
    if not value.is_valid and not field.nullable:
        raise _invalid(path, "The column is NOT NULL, and the default is null.")


def _default_of(field: StructField) -> ColumnDefault:
    text: Any = field.metadata[CURRENT_DEFAULT_KEY]
    if not isinstance(text, str):
        raise _invalid((field.name,), f"{CURRENT_DEFAULT_KEY} is {text!r}, which is not a string.")
    return ColumnDefault(name=field.name, data_type=field.data_type, text=text)


def _time_at(now_ms: int) -> Callable[[Word], str | None]:
    moment = _EPOCH + dt.timedelta(milliseconds=now_ms)

    def constant(word: Word) -> str | None:
        name = word.path[0].lower()
        form = _TIMES.get(name)
        if form is None or len(word.path) > 1 or word.is_quoted or word.has_arguments:
            return None
        if name in _ONLY_CALLED and not word.is_called:
            return None
        return form.format(time=moment.isoformat(sep=" ", timespec="microseconds"), date=moment.date())

    return constant


def _assignable(source: DataType, target: DataType) -> bool:
    """Whether Spark's ANSI store assignment allows a constant of one type in a column of another."""
    if VARIANT in (source, target):
        return False
    if source == target:
        return True
    if is_numeric(source) and is_numeric(target):
        return True
    if source in DATETIMES and target in DATETIMES:
        return True
    return target == STRING and (source == BOOLEAN or is_numeric(source) or source in DATETIMES)


def _invalid(path: Path, cause: str) -> SchemaError:
    return SchemaError(
        f"Column {display_path(path)} cannot have a default.",
        cause=cause,
        fix="Only set defaults of top-level columns that are neither generated nor identity columns.",
    )
