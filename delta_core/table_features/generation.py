"""Generated columns: their definition, and what it is made from.

PROTOCOL.md, "Generated Columns": every row satisfies `(<value> <=> <expression>) IS TRUE`. A writer that
was given no value computes it, one that was given a value checks it.

An expression of a `timestamp` takes it in the session's time zone, which no log records: here it is UTC. A
row that another engine computed in another zone may not pass the check when it is written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delta_core.errors import ExpressionError, SchemaError
from delta_core.expressions.ast import Arithmetic, Call, Expression
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.literals import is_numeric
from delta_core.expressions.parse import parse_value
from delta_core.expressions.quoted_names import quoted_name
from delta_core.expressions.typing import type_of
from delta_core.schema.column_paths import Path, shown, walk_fields
from delta_core.schema.field_metadata import CURRENT_DEFAULT_KEY, GENERATION_KEY, is_identity, with_metadata
from delta_core.schema.types import VARIANT, VOID, DataType, DecimalType, StructField, StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedColumn:
    """A generated column.

    Attributes:
        name: the column's.
        data_type: the column's type.
        text: the expression as the table has it.
        expression: resolved against the table's schema; its value is cast to `data_type`.
        sources: the columns that it is made from, canonical paths. None of them is generated.
    """

    name: str
    data_type: DataType
    text: str
    expression: Expression
    sources: frozenset[Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationExpression:
    """What a column is generated from, as the table has it: not parsed, as copied rows need no values.

    Attributes:
        name: the column's.
        text: the expression.
    """

    name: str
    text: str


def generation_expressions(schema: StructType) -> tuple[GenerationExpression, ...]:
    """The generated columns of a table, in the schema's order.

    Raises:
        SchemaError: a column within another one or of variants is generated, or an expression is no text.
    """
    found = []
    for path, field in walk_fields(schema):
        if GENERATION_KEY not in field.metadata:
            continue
        text = field.metadata[GENERATION_KEY]
        if len(path) > 1:
            raise _invalid(path, "It lies within another column")
        if not isinstance(text, str):
            raise _invalid(path, f"Its expression is {text!r}, not text")
        if field.data_type == VARIANT:
            raise _invalid(path, "Values of type variant cannot be compared")
        found.append(GenerationExpression(name=field.name, text=text))
    return tuple(found)


def generated_columns(schema: StructType) -> tuple[GeneratedColumn, ...]:
    """The generated columns of a table, in the schema's order, ready to be computed.

    None depends on another, so any order of computing them will do.

    Raises:
        ExpressionError: an expression cannot be understood here, so neither computed nor enforced.
        SchemaError: a generated column within another column, which nobody can compute, or one that is
            made from a generated column.
    """
    found = []
    for one in generation_expressions(schema):
        field = schema.find(one.name)
        assert field is not None
        found.append(_parsed(field, one.text, schema))
    return tuple(found)


def validate_generated(schema: StructType) -> None:
    """Check the generated columns of a table that is created, or whose schema changes; delta-spark's rules.

    The types must be equal, as Spark sees them. It gives arithmetic on decimals other precisions than are
    known here, so such an expression has to say its type in a CAST.

    Raises:
        ExpressionError: an expression is not understood, names a column that there is not, or depends on
            more than the row: the present time, random numbers, the user.
        SchemaError: a column or its type cannot be generated.
    """
    for one in generated_columns(schema):
        field = schema.find(one.name)
        assert field is not None
        if one.data_type in (VARIANT, VOID):
            raise _invalid((one.name,), f"Values of type {one.data_type} cannot be compared")
        if is_identity(field) or CURRENT_DEFAULT_KEY in field.metadata:
            raise _invalid((one.name,), "It is an identity column, or has a default, too")
        text = quoted_name(one.expression, schema)
        if text is not None:
            raise _invalid(
                (one.name,),
                f"{one.text} looks at no column: '{text}' is a text, whatever its quotes",
                f"Write the name of the column in backticks, or without quotes: `{text}`",
            )
        found = type_of(one.expression, schema)
        if found != one.data_type or _decimal_is_guessed(one.expression, found):
            raise _invalid(
                (one.name,),
                f"It is of type {one.data_type}, and {one.text} gives {found}",
                f"Write CAST({one.text} AS {_sql_type(one.data_type)})",
            )


def define_generated(field: StructField, expression: str) -> StructField:
    """A field of a table to be created, as generated column; `validate_generated` checks it in its schema."""
    return with_metadata(field, {GENERATION_KEY: expression})


def _parsed(field: StructField, text: str, schema: StructType) -> GeneratedColumn:
    try:
        expression = parse_value(text, schema)
    except ExpressionError as error:
        raise ExpressionError(
            f"Column {field.name} cannot be generated by {text}",
            cause=f"{error.problem}. {error.cause}",
            fix=error.fix,
        ) from error
    sources = referenced_columns(expression)
    for path in sorted(sources):
        source = schema.find(path[0])
        if source is not None and GENERATION_KEY in source.metadata:
            what = "itself" if source.name == field.name else "another generated column"
            raise _invalid((field.name,), f"{text} names {what}, {source.name}")
    found = type_of(expression, schema)
    if not _converts(found, field.data_type):
        raise _invalid((field.name,), f"It is of type {field.data_type}, and {text} gives {found}")
    return GeneratedColumn(
        name=field.name, data_type=field.data_type, text=text, expression=expression, sources=sources
    )


def _converts(found: DataType, wanted: DataType) -> bool:
    """Whether Spark may have seen the column's type where another is seen here."""
    return found in (wanted, VOID) or (is_numeric(found) and is_numeric(wanted))


def _decimal_is_guessed(expression: Expression, found: DataType) -> bool:
    """Whether the precision of a result is this library's own choice."""
    if not isinstance(found, DecimalType):
        return False
    return any(isinstance(node, Arithmetic) for node in _deciding(expression))


def _deciding(expression: Expression) -> Iterator[Expression]:
    """The parts that the type of an expression comes from; a CAST decides alone."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _deciding(argument)


def _sql_type(data_type: DataType) -> str:
    names = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}
    return names.get(str(data_type), str(data_type).upper())


def _invalid(path: Path, cause: str, fix: str = "") -> SchemaError:
    return SchemaError(
        f"Column {shown(path)} cannot be a generated column",
        cause=cause,
        fix=fix or "Generate a top-level column from columns that are not generated",
    )
