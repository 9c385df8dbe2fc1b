"""The type changes that a reader supports (PROTOCOL.md, "Type Widening")."""

from __future__ import annotations

from collections.abc import Iterator

from delta_core.actions import Metadata
from delta_core.errors import SchemaError
from delta_core.schema.json import type_from_name
from delta_core.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from delta_core.table_features.feature import field_metadata

CHANGES_KEY = "delta.typeChanges"

# Digits that hold every value of the type. For byte and short the protocol also requires 10; some tables have
# fewer, and none of their values are lost.
_WIDTHS = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 20}
_ORDER = (BYTE, SHORT, INTEGER, LONG)


def widens(before: DataType, after: DataType) -> bool:
    """Whether the protocol allows widening `before` to `after`, and this library reads such files.

    Files that were written before the change still have the type `before`.
    """
    if before in _ORDER:
        if after in _ORDER:
            return _ORDER.index(before) < _ORDER.index(after)
        if isinstance(after, DecimalType):
            return after.precision - after.scale >= _WIDTHS[before]
        return after == DOUBLE and before != LONG
    if isinstance(before, DecimalType) and isinstance(after, DecimalType):
        return (
            before != after
            and after.scale >= before.scale
            and after.precision - after.scale >= before.precision - before.scale
        )
    return (before, after) in ((FLOAT, DOUBLE), (DATE, TIMESTAMP_NTZ))


def unsupported_changes(metadata: Metadata) -> Iterator[str]:
    """The recorded type changes in the schema that readers do not support."""
    for fields in field_metadata(metadata):
        changes = fields.get(CHANGES_KEY)
        for change in changes if isinstance(changes, list) else [changes] if changes else []:
            before, after = (
                (change.get("fromType"), change.get("toType")) if isinstance(change, dict) else (None, None)
            )
            try:
                known = widens(type_from_name(str(before)), type_from_name(str(after)))
            except SchemaError:
                known = False
            if not known:
                yield f"{before} to {after}"
