"""How Arrow tells a variant from a struct that happens to have the same two fields.

The field carries the name of Arrow's canonical extension type (`arrow.parquet.variant`), as what is left of
the extension where nobody has registered it: any library passes that on, and none has to know it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from delta_core.variants.shredding import VARIANT_TYPE

EXTENSION_NAME = "arrow.parquet.variant"
_KEY = b"ARROW:extension:name"

MARK: Mapping[bytes, bytes] = {_KEY: EXTENSION_NAME.encode()}
"""Metadata of a field that is a variant."""


def variant_field(name: str, *, nullable: bool = True) -> pa.Field:
    """A column of variants in an Arrow schema, for a table that does not have it yet.

    Args:
        name: the column's, or a struct's field's; `element` in a list, `value` in a map.
        nullable: as Arrow's.
    """
    return pa.field(name, VARIANT_TYPE, nullable=nullable, metadata=dict(MARK))


def is_marked(field: pa.Field) -> bool:
    """Whether a field says that it is a variant, whatever its type is."""
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == EXTENSION_NAME)
    return field.metadata is not None and field.metadata.get(_KEY) == MARK[_KEY]


def storage_of(field: pa.Field) -> pa.DataType:
    """The type of a field without its extension."""
    found = field.type
    return found.storage_type if isinstance(found, pa.BaseExtensionType) else found
