"""Definitions of generated columns, and their source columns.

PROTOCOL.md, "Generated Columns": every row satisfies `(<value> <=> <expression>) IS TRUE`. A writer computes
the value when the data does not have it, and checks it otherwise.

An expression of a `timestamp` is evaluated in the session's time zone, which the log does not record; here
the time zone is UTC. A row that another engine computed in another time zone may fail the check when it is
rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delta_core.errors import ExpressionError, SchemaError
from delta_core.expressions.ast import Arithmetic, Call, Expression
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.literals import is_numeric
from delta_core.expressions.parse import parse_value
from delta_core.expressions.typing import quoted_name, type_of
from delta_core.schema.column_paths import Path, display_path, walk_fields
from delta_core.schema.field_metadata import CURRENT_DEFAULT_KEY, GENERATION_KEY, is_identity, with_metadata
from delta_core.schema.types import VARIANT, VOID, DataType, DecimalType, StructField, StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedColumn:
    """A generated column.

    Attributes:
        name: the column's name.
        data_type: the column's type.
        text: the expression as stored in the table.
        expression: resolved against the table's schema; its value is cast to `data_type`.
        sources: canonical paths of the source columns. None of them is a generated column.
    """

    name: str
    data_type: DataType
    text: str
    expression: Expression
    sources: frozenset[Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationExpression:
    """The unparsed expression of a generated column; copied rows already have values and need no parsing.

    Attributes:
        name: the column's name.
        text: the expression.
    """

    name: str
    text: str


def generation_expressions(schema: StructType) -> tuple[GenerationExpression, ...]:
    """The generation expressions of a table, in the schema's order.

    Raises:
        SchemaError: a nested column or a variant column is generated, or an expression is not a string.
    """
    result = []
    for path, field in walk_fields(schema):
        if GENERATION_KEY not in field.metadata:
            continue
        text = field.metadata[GENERATION_KEY]
        if len(path) > 1:
            raise _invalid(path, "It is within another column.")
        if not isinstance(text, str):
            raise _invalid(path, f"Its expression is {text!r}, which is not a string.")
        if field.data_type == VARIANT:
            raise _invalid(path, "Values of type variant cannot be compared.")
        result.append(GenerationExpression(name=field.name, text=text))
    return tuple(result)


def generated_columns(schema: StructType) -> tuple[GeneratedColumn, ...]:
    """The generated columns of a table, in the schema's order, ready to be computed.

    No column depends on another, so they can be computed in any order.

    Raises:
        ExpressionError: an expression is not supported, so it can be neither computed nor enforced.
        SchemaError: a generated column is within another column, which no engine can compute, or depends on a
            generated column.
    """
    result = []
    for one in generation_expressions(schema):
        field = schema.find(one.name)
        assert field is not None
        result.append(_parsed(field, one.text, schema))
    return tuple(result)


def validate_generated(schema: StructType) -> None:
    """Check the generated columns of a new table, or of a table whose schema changes, by delta-spark's rules.

    The types of column and expression must be equal in Spark. Spark computes other precisions for arithmetic
    on decimals than this library, so such an expression must have a CAST to the column's type.

    Raises:
        ExpressionError: an expression is not supported, refers to a missing column, or depends on more than
            the row: the present time, random numbers, the user.
        SchemaError: the column, or a column of its type, cannot be generated.
    """
    for one in generated_columns(schema):
        field = schema.find(one.name)
        assert field is not None
        if one.data_type in (VARIANT, VOID):
            raise _invalid((one.name,), f"Values of type {one.data_type} cannot be compared.")
        if is_identity(field) or CURRENT_DEFAULT_KEY in field.metadata:
            raise _invalid((one.name,), "It is also an identity column, or has a default.")
        string = quoted_name(one.expression, schema)
        if string is not None:
            raise _invalid(
                (one.name,),
                f"{one.text} refers to no column: '{string}' is a string in either kind of quotes.",
                f"Write the name of the column in backticks, or without quotes: `{string}`.",
            )
        result_type = type_of(one.expression, schema)
        if result_type != one.data_type or _decimal_is_guessed(one.expression, result_type):
            raise _invalid(
                (one.name,),
                f"It is of type {one.data_type}, and {one.text} is of type {result_type}.",
                f"Write CAST({one.text} AS {_sql_type(one.data_type)}).",
            )


def define_generated(field: StructField, expression: str) -> StructField:
    """A generated column for a table to be created; `validate_generated` checks it with its schema."""
    return with_metadata(field, {GENERATION_KEY: expression})


def _parsed(field: StructField, text: str, schema: StructType) -> GeneratedColumn:
    try:
        expression = parse_value(text, schema)
    except ExpressionError as error:
        raise ExpressionError(
            f"Column {field.name} cannot be generated by {text}.",
            cause=f"{error.problem.rstrip('.')}. {error.cause}",
            fix=error.fix,
        ) from error
    sources = referenced_columns(expression)
    for path in sorted(sources):
        source = schema.find(path[0])
        if source is not None and GENERATION_KEY in source.metadata:
            what = "itself" if source.name == field.name else "another generated column"
            raise _invalid((field.name,), f"{text} refers to {what}, {source.name}.")
    result_type = type_of(expression, schema)
    if not _converts(result_type, field.data_type):
        raise _invalid(
            (field.name,), f"It is of type {field.data_type}, and {text} is of type {result_type}."
        )
    return GeneratedColumn(
        name=field.name, data_type=field.data_type, text=text, expression=expression, sources=sources
    )


def _converts(result_type: DataType, column_type: DataType) -> bool:
    """Whether Spark may compute the column's type where this library computes another type."""
    return result_type in (column_type, VOID) or (is_numeric(result_type) and is_numeric(column_type))


def _decimal_is_guessed(expression: Expression, result_type: DataType) -> bool:
    """Whether this library may choose a different precision for the result than Spark does."""
    if not isinstance(result_type, DecimalType):
        return False
    return any(isinstance(node, Arithmetic) for node in _deciding(expression))


def _deciding(expression: Expression) -> Iterator[Expression]:
    """The parts that determine the type of an expression; a CAST determines it alone."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _deciding(argument)


def _sql_type(data_type: DataType) -> str:
    names = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}
    return names.get(str(data_type), str(data_type).upper())


def _invalid(path: Path, cause: str, fix: str = "") -> SchemaError:
    return SchemaError(
        f"Column {display_path(path)} cannot be a generated column.",
        cause=cause,
        fix=fix or "Generate a top-level column from columns that are not generated.",
    )
