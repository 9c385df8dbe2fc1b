"""Converts Python values into column values without loss. Arrow alone converts 1.5 to 1, and 5 to a date."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Literal
from delta_core.expressions.literals import FLOATING, INTEGRAL_RANGES, convert_literal, is_numeric
from delta_core.plain_values import plain
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from delta_core.variants.python_values import encoded


def python_scalar(value: Any, data_type: DataType, where: str) -> pa.Scalar:
    """A Python value in the Arrow type of a column.

    Args:
        value: None, a bool, number, string, bytes, date or datetime, also of NumPy; a mapping for a struct or
            a map, a sequence for an array. A string is parsed as a value of the type. A datetime without a
            time zone is in UTC for a `timestamp` column. A variant takes the values that
            `variants.python_values` takes.
        data_type: the type of the column.
        where: the column, for messages.

    Raises:
        ExpressionError: the value does not fit the type.
    """
    try:
        return pa.array([_exact(value, data_type, where)], type_to_arrow(data_type))[0]
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise ExpressionError(
            f"{value!r} cannot be assigned to {where}.",
            cause=f"It is not a value of the type {data_type}: {str(error).rstrip('.')}.",
            fix="Use a value of the column's type.",
        ) from error


def _exact(value: Any, data_type: DataType, where: str) -> Any:
    """The value that Arrow converts without loss. Raises TypeError or ValueError for an unsuitable value."""
    value = plain(value)
    if value is None:
        return None
    if data_type == VARIANT:
        return encoded(value)
    match data_type:
        case StructType():
            return _struct(value, data_type, where)
        case ArrayType():
            if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
                raise TypeError(f"a {type(value).__name__} is not an array")
            return [_exact(item, data_type.element_type, where) for item in value]
        case MapType():
            return _map(value, data_type, where)
    if isinstance(value, str):
        return convert_literal(Literal(value), data_type, where).value
    if is_numeric(data_type):
        return _number(value, data_type)
    if not isinstance(value, _TAKEN.get(data_type, ())) or _loses_time(value, data_type):
        raise TypeError(f"a {type(value).__name__} is not a {data_type}")
    return value


def _struct(value: Any, data_type: StructType, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a {type(value).__name__} is not a struct")
    given = {str(name).casefold(): item for name, item in value.items()}
    if len(given) < len(value):
        raise ValueError("two of its field names differ only in case")
    unknown = given.keys() - {field.name.casefold() for field in data_type}
    if unknown:
        raise ValueError(f"the struct has no field {min(unknown)}")
    return {
        field.name: _exact(given.get(field.name.casefold()), field.data_type, f"{where}.{field.name}")
        for field in data_type
    }


def _map(value: Any, data_type: MapType, where: str) -> list[tuple[Any, Any]]:
    pairs = [
        (_exact(key, data_type.key_type, where), _exact(item, data_type.value_type, where))
        for key, item in (value.items() if isinstance(value, Mapping) else value)
    ]
    # Keys may be lists or mappings, which cannot be hashed. 1 and "1" may be the same key.
    keys = pa.array([key for key, _ in pairs], type_to_arrow(data_type.key_type)).to_pylist()
    if len({repr(key) for key in keys}) < len(keys):
        raise ValueError("it has the same key twice")
    return pairs


def _number(value: Any, data_type: DataType) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError(f"a {type(value).__name__} is not a {data_type}")
    if data_type in FLOATING:
        number = float(value)
        if math.isfinite(value) and abs(number) >= _LIMITS[data_type]:
            raise ValueError("it is too large")
        return number
    if data_type in INTEGRAL_RANGES:
        if value != int(value):
            raise ValueError("it has a fraction")
        return int(value)
    assert isinstance(data_type, DecimalType)
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _loses_time(value: Any, data_type: DataType) -> bool:
    if not isinstance(value, dt.datetime):
        return False
    return data_type == DATE or (data_type == TIMESTAMP_NTZ and value.tzinfo is not None)


# Values from here on are rounded to infinity: halfway past the largest finite value.
_LIMITS: Mapping[DataType, float] = {FLOAT: 2.0**128 - 2.0**103, DOUBLE: math.inf}
_TAKEN: Mapping[DataType, tuple[type, ...]] = {
    STRING: (str,),
    BINARY: (bytes,),
    BOOLEAN: (bool,),
    DATE: (dt.date,),
    TIMESTAMP: (dt.date,),
    TIMESTAMP_NTZ: (dt.date,),
}
"""The Python types for each column type. A datetime is a subclass of date."""
