"""Errors in what a caller passes: schemas, rows, expressions, configuration."""

from __future__ import annotations

from delta_core.errors.base import DeltaError, described


class SchemaError(DeltaError):
    """A schema is not valid, or does not fit the table or the operation."""

    code = "SCHEMA_ERROR"


class SchemaMismatchError(SchemaError):
    """The data's columns or types do not match the table's."""

    code = "SCHEMA_MISMATCH"


class SchemaEvolutionError(SchemaError):
    """The requested schema change is not allowed."""

    code = "SCHEMA_EVOLUTION_REFUSED"


class ConstraintViolationError(DeltaError):
    """Rows break a constraint; the message shows one of them."""

    code = "CONSTRAINT_VIOLATION"


class InputDataError(DeltaError):
    """The source of the rows to be written failed. None of the rows were committed."""

    code = "INPUT_DATA_FAILED"


def unreadable_data(error: Exception) -> InputDataError:
    """The error for a source of rows that raised an exception: a file, a query, a caller's generator."""
    return InputDataError(
        "The rows to be written could not be read.",
        cause=f"The source of the rows raised {described(error)}",
        fix="Repair the source and write again. Nothing was committed.",
    )


class MergeDuplicateMatchError(DeltaError):
    """Several source rows match one target row; the message names some of their keys."""

    code = "MERGE_DUPLICATE_MATCH"


class ExpressionError(DeltaError):
    """A predicate or expression does not parse or does not fit the schema."""

    code = "INVALID_EXPRESSION"


class SqlStatementError(DeltaError):
    """A SQL statement cannot run; the message has the line and the column."""

    code = "SQL_STATEMENT_REFUSED"


class InvalidSqlError(SqlStatementError):
    """A SQL statement has a syntax error, or lacks the value of a parameter."""

    code = "INVALID_SQL"


class UnsupportedSqlError(SqlStatementError):
    """A SQL statement or clause is known, but not supported for tables of this library."""

    code = "UNSUPPORTED_SQL"


class ConfigurationError(DeltaError):
    """An option, URI or property value is not valid."""

    code = "INVALID_CONFIGURATION"


class StreamPositionError(ConfigurationError):
    """A value is not the position of a stream, or the position of another table's stream."""

    code = "INVALID_STREAM_POSITION"


class InvalidUriError(ConfigurationError):
    """No store supports the URI, or the URI is not valid."""

    code = "INVALID_URI"


class InvalidTablePropertyError(ConfigurationError):
    """A table property has a value that it cannot take."""

    code = "INVALID_TABLE_PROPERTY"
