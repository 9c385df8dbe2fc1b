"""Whether bytes are variants (apache/parquet-format, VariantEncoding.md), before they go into a table.

Whoever reads them later trusts their offsets and looks fields up by bisection, so all of a value is looked
at: every size, the order of an object's names, every text. Equal dictionaries and equal values are checked
once. Costs Python work for each distinct value, about as much as decoding it.
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
    text_bytes,
    value_size,
)

_DECIMAL_IDS = frozenset({8, 9, 10})
_HIGHEST_SCALE = 38


def first_malformed(array: pa.StructArray) -> tuple[int, str] | None:
    """The position of the first variant that is none, and what is wrong; None when all are well-formed.

    Args:
        array: of the type VARIANT_TYPE. Nulls are fine.
    """
    absent = pc.is_null(array).to_pylist()
    strings = pc.struct_field(array, ["metadata"]).to_pylist()
    values = pc.struct_field(array, ["value"]).to_pylist()
    dictionaries: dict[bytes, Dictionary] = {}
    seen: set[tuple[bytes, bytes]] = set()
    for row, (gone, text, value) in enumerate(zip(absent, strings, values, strict=True)):
        if gone or (text, value) in seen:
            continue
        try:
            known = dictionaries.get(text)
            if known is None:
                known = dictionaries[text] = _dictionary(text)
            check_value(value, known)
        except MalformedVariant as error:
            return row, str(error)
        seen.add((text, value))
    return None


def check_value(value: bytes, dictionary: Dictionary) -> None:
    """Check one value and all that it holds.

    Raises:
        MalformedVariant: says what is wrong.
    """
    pending = [value]
    while pending:
        one = pending.pop()
        if value_size(one, 0) != len(one):
            raise MalformedVariant("bytes follow a value")
        match kind_of(one):
            case "object":
                fields = object_fields(one, dictionary)
                if any(first >= second for first, second in pairwise(fields)):
                    raise MalformedVariant("the fields of an object are not in the order of their names")
                pending.extend(fields.values())
            case "array":
                pending.extend(array_values(one))
            case "text":
                _require_utf8(text_bytes(one))
            case _:
                if one[0] >> 2 in _DECIMAL_IDS and one[1] > _HIGHEST_SCALE:
                    raise MalformedVariant(f"a decimal has the scale {one[1]}")


def _dictionary(metadata: bytes) -> Dictionary:
    found = Dictionary.parse(metadata)
    for name in found.names:
        _require_utf8(name)
    return found


def _require_utf8(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise MalformedVariant("a text is not UTF-8") from error
