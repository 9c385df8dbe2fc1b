"""What a checkpoint's column may be of: writers choose widths and encodings, never another kind of value."""

from __future__ import annotations

import pyarrow as pa


class MalformedColumn(TypeError):  # noqa: N818 - a signal to the caller, who names the file
    """A checkpoint's column is not of the shape that the protocol gives it."""


def as_type(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A column of texts, integers or truth values as the type that it is wanted in.

    Arrow would turn nearly anything into anything: times into numbers, numbers into truth values. What the
    writer meant by such a column nobody knows.

    Raises:
        MalformedColumn: it is of another kind.
        pyarrow.ArrowInvalid: a value does not fit, or is no text.
    """
    if values.type == wanted:
        return values
    if not (pa.types.is_null(values.type) or _is_kind(values.type, wanted)):
        raise MalformedColumn(f"expected {wanted}, found {values.type}")
    return values.cast(wanted)


def is_string(found: pa.DataType) -> bool:
    """Whether it is one of Arrow's types for texts, by itself or in a dictionary."""
    plain = found.value_type if pa.types.is_dictionary(found) else found
    # Not every writer says of its texts that they are UTF-8.
    return any(is_one(plain) for is_one in _STRINGS)


def _is_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_string(wanted):
        return is_string(found)
    return bool(pa.types.is_integer(wanted) and pa.types.is_integer(found))


_STRINGS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)
