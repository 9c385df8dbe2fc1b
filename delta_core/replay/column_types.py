"""The Arrow types that a checkpoint's column may have.

Writers may choose widths and encodings, but not another kind of value.
"""

from __future__ import annotations

import pyarrow as pa


class MalformedColumn(TypeError):  # noqa: N818 - a signal to the caller, who names the file
    """A checkpoint's column does not have the type that the protocol defines."""


def as_type(values: pa.Array, target: pa.DataType) -> pa.Array:
    """A column of strings, integers or booleans, cast to the target type of the same kind.

    Casts between kinds are refused. Arrow would also cast times to numbers or numbers to booleans, and the
    meaning of such a column is unknown.

    Raises:
        MalformedColumn: the column's type is not of the same kind as the target type.
        pyarrow.ArrowInvalid: a value does not fit, or is not valid UTF-8.
    """
    if values.type == target:
        return values
    if not (pa.types.is_null(values.type) or _same_kind(values.type, target)):
        raise MalformedColumn(f"expected {target}, found {values.type}")
    return values.cast(target)


def is_string(data_type: pa.DataType) -> bool:
    """True for Arrow's string and binary types, also as values of a dictionary."""
    plain = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    # Some writers do not mark string columns as UTF-8, so that they are read as binary.
    return any(is_one(plain) for is_one in _STRINGS)


def _same_kind(data_type: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_string(target):
        return is_string(data_type)
    return bool(pa.types.is_integer(target) and pa.types.is_integer(data_type))


_STRINGS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)
