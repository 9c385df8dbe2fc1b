"""SQL names of types."""

from __future__ import annotations

from typing import Any, NoReturn

from sqlglot import exp

from delta_core.errors import ExpressionError, SchemaError
from delta_core.schema.json import type_from_name
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)

_TYPES: dict[exp.DType, DataType] = {
    exp.DType.TINYINT: BYTE,
    exp.DType.SMALLINT: SHORT,
    exp.DType.INT: INTEGER,
    exp.DType.BIGINT: LONG,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}


def data_type_of(node: Any) -> DataType:
    """The target type of a cast.

    Raises:
        ExpressionError: the type is neither primitive nor decimal.
    """
    if isinstance(node, exp.DataType):
        known = _TYPES.get(node.this)
        if known is not None:
            return known
        if node.this == exp.DType.DECIMAL:
            parameters = [str(parameter.this) for parameter in node.expressions]
            name = {0: "decimal(10,0)", 1: f"decimal({parameters[0]},0)" if parameters else ""}.get(
                len(parameters), f"decimal({','.join(parameters)})"
            )
            try:
                return type_from_name(name)
            except SchemaError as error:
                _fail(f"{name} is not a type.", error.cause, "Use a precision of at most 38.")
    _fail(f"The type {node} is not supported.", "A cast needs a primitive type.", "Cast to another type.")


def _fail(problem: str, cause: str, fix: str) -> NoReturn:
    raise ExpressionError(problem, cause=cause, fix=fix)
