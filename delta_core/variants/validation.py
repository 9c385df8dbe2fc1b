"""Validation of variants (apache/parquet-format, VariantEncoding.md) before they are written to a table.

Readers trust the offsets of a variant and search its fields by bisection, so everything is checked: every
size, the order of an object's names, every string. Equal dictionaries and equal values are checked once. The
cost in Python is about that of decoding each distinct value.
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.variants.encoding import (
    Dictionary,
    MalformedVariant,
    array_values,
    kind_of,
    object_fields,
    string_bytes,
    value_size,
)

_DECIMAL_IDS = frozenset({8, 9, 10})
_HIGHEST_SCALE = 38


def first_malformed(array: pa.StructArray) -> tuple[int, str] | None:
    """The position of the first malformed variant, and the reason; None when all are well-formed.

    Args:
        array: of the type VARIANT_TYPE. Nulls are allowed.
    """
    absent = pc.is_null(array).to_pylist()
    metadata = pc.struct_field(array, ["metadata"]).to_pylist()
    values = pc.struct_field(array, ["value"]).to_pylist()
    dictionaries: dict[bytes, Dictionary] = {}
    seen: set[tuple[bytes, bytes]] = set()
    for row, (is_null, names, value) in enumerate(zip(absent, metadata, values, strict=True)):
        if is_null or (names, value) in seen:
            continue
        try:
            known = dictionaries.get(names)
            if known is None:
                known = dictionaries[names] = _dictionary(names)
            check_value(value, known)
        except MalformedVariant as error:
            return row, str(error)
        seen.add((names, value))
    return None


def check_value(value: bytes, dictionary: Dictionary) -> None:
    """Check one value and all values within it.

    Raises:
        MalformedVariant: the message states the reason.
    """
    pending = [value]
    while pending:
        one = pending.pop()
        if value_size(one, 0) != len(one):
            raise MalformedVariant("There are bytes after the end of a value.")
        match kind_of(one):
            case "object":
                fields = object_fields(one, dictionary)
                if any(first >= second for first, second in pairwise(fields)):
                    raise MalformedVariant("The fields of an object are not sorted by their names.")
                pending.extend(fields.values())
            case "array":
                pending.extend(array_values(one))
            case "string":
                _require_utf8(string_bytes(one))
            case _:
                if one[0] >> 2 in _DECIMAL_IDS and one[1] > _HIGHEST_SCALE:
                    raise MalformedVariant(f"A decimal has the scale {one[1]}, above {_HIGHEST_SCALE}.")


def _dictionary(metadata: bytes) -> Dictionary:
    dictionary = Dictionary.parse(metadata)
    for name in dictionary.names:
        _require_utf8(name)
    return dictionary


def _require_utf8(string: bytes) -> None:
    try:
        string.decode()
    except UnicodeDecodeError as error:
        raise MalformedVariant("A string is not valid UTF-8.") from error
