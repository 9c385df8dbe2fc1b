"""Defaults of columns (PROTOCOL.md, "Default Columns").

A row that has no value for a column gets its default; one whose value is null keeps the null. Rows that the
table has already never get it, which is why a column is not added with a default: it is set afterwards.

A default is a constant expression, or one of the time of the statement: `current_timestamp()`, `now()`,
`current_date()`, `curdate()`, `localtimestamp()`, in UTC. All rows of one write get the same time.
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
from delta_core.schema.column_paths import Path, find_path, shown, update_field, walk_fields
from delta_core.schema.field_metadata import (
    CURRENT_DEFAULT_KEY,
    EXISTS_DEFAULT_KEY,
    GENERATION_KEY,
    is_identity,
    with_metadata,
    without_metadata,
)
from delta_core.schema.types import BOOLEAN, STRING, VARIANT, VOID, DataType, StructField, StructType
from delta_core.table_features.expression_words import Word, replace_words

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
        name: the column's.
        data_type: the column's type.
        text: the expression as the table has it.
    """

    name: str
    data_type: DataType
    text: str

    @property
    def is_constant(self) -> bool:
        """Whether every write gets the same value."""
        return replace_words(self.text, _time_at(0)) == self.text

    def value(self, *, now_ms: int) -> pa.Scalar:
        """The value for rows of one write.

        Args:
            now_ms: the time of the write, as milliseconds since 1970 in UTC.

        Returns:
            Of the column's Arrow type; null where the default is.

        Raises:
            ExpressionError: the text is nothing that is understood here, such as a function that is not
                known, or its value does not fit the column.
        """
        try:
            expression = parse_value(replace_words(self.text, _time_at(now_ms)), _NO_COLUMNS)
            found = type_of(expression, _NO_COLUMNS)
        except ExpressionError as error:
            raise self._error(f"{error.problem}. {error.cause}") from error
        if found == VOID:
            return pa.scalar(None, type_to_arrow(self.data_type))
        if not _assignable(found, self.data_type):
            raise self._error(f"It is of type {found}, the column of type {self.data_type}")
        return self._converted(expression, found)

    def _converted(self, expression: Expression, found: DataType) -> pa.Scalar:
        if found == self.data_type:
            return self._evaluated(expression)
        cast = resolve(Cast(expression, self.data_type), _NO_COLUMNS)
        value = self._evaluated(cast)
        if self.data_type in FLOATING:
            before = self._evaluated(expression).as_py()
            kept = value.as_py() is None or not math.isfinite(before) or math.isfinite(value.as_py())
        elif is_numeric(self.data_type):
            same = Comparison(ComparisonOperator.EQ_NULL_SAFE, expression, cast)
            kept = self._evaluated(resolve(same, _NO_COLUMNS)).as_py()
        else:
            kept = True
        if not kept:
            raise self._error(f"The column is of type {self.data_type}, which does not hold the value")
        return value

    def _evaluated(self, expression: Expression) -> pa.Scalar:
        try:
            return evaluate(expression, pa.table({"row": [0]}))[0]
        except ExpressionError as error:
            raise self._error(f"{error.problem}. {error.cause}") from error

    def _error(self, cause: str) -> ExpressionError:
        return ExpressionError(
            f"Column {self.name} cannot have the default {self.text}",
            cause=cause,
            fix="Use a constant of the column's type, texts in single quotes such as 'new', or "
            "current_timestamp() or current_date()",
        )


def column_defaults(schema: StructType) -> tuple[ColumnDefault, ...]:
    """The defaults of a table's columns, in the schema's order; not parsed, since most writes need none.

    Raises:
        SchemaError: a default is no text.
    """
    return tuple(_default_of(field) for field in schema if CURRENT_DEFAULT_KEY in field.metadata)


def set_default(schema: StructType, column: Sequence[str], text: str) -> StructType:
    """The schema with a default for a column, for rows that come later.

    Raises:
        SchemaEvolutionError: no such column.
        SchemaError: a column that cannot have one: nested, generated, identity, or a variant, but for null.
        ExpressionError: see `ColumnDefault.value`.
    """
    path = find_path(schema, column)

    def defaulted(field: StructField) -> StructField:
        changed = with_metadata(field, {CURRENT_DEFAULT_KEY: text.strip()})
        _validate(path, changed)
        return changed

    return update_field(schema, path, defaulted)


def drop_default(schema: StructType, column: Sequence[str]) -> StructType:
    """The schema without a default for a column; one that has none stays as it is.

    Raises:
        SchemaEvolutionError: no such column.
    """
    keys = (CURRENT_DEFAULT_KEY, EXISTS_DEFAULT_KEY)
    return update_field(schema, column, lambda field: without_metadata(field, keys))


def validate_defaults(schema: StructType) -> None:
    """Check the defaults of a table that is created, or whose schema changes.

    Raises:
        SchemaError, ExpressionError: see `set_default`.
    """
    for path, field in walk_fields(schema):
        if CURRENT_DEFAULT_KEY in field.metadata:
            _validate(path, field)


def _validate(path: Path, field: StructField) -> None:
    if len(path) > 1:
        raise _invalid(path, "It lies within another column")
    if GENERATION_KEY in field.metadata or is_identity(field):
        raise _invalid(path, "Its values are computed otherwise")
    value = _default_of(field).value(now_ms=_SOME_TIME_MS)
    if not value.is_valid and not field.nullable:
        raise _invalid(path, "The column is NOT NULL, and the default null")


def _default_of(field: StructField) -> ColumnDefault:
    text: Any = field.metadata[CURRENT_DEFAULT_KEY]
    if not isinstance(text, str):
        raise _invalid((field.name,), f"{CURRENT_DEFAULT_KEY} is {text!r}, not text")
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


def _assignable(found: DataType, wanted: DataType) -> bool:
    """Whether Spark stores a constant of one type in a column of another, in its ANSI way."""
    if VARIANT in (found, wanted):
        return False
    if found == wanted:
        return True
    if is_numeric(found) and is_numeric(wanted):
        return True
    if found in DATETIMES and wanted in DATETIMES:
        return True
    return wanted == STRING and (found == BOOLEAN or is_numeric(found) or found in DATETIMES)


def _invalid(path: Path, cause: str) -> SchemaError:
    return SchemaError(
        f"Column {shown(path)} cannot have a default",
        cause=cause,
        fix="Give defaults to top-level columns that are neither generated nor identity columns",
    )
