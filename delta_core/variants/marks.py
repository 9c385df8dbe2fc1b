"""The mark in Arrow that distinguishes a variant from a struct that has the same two fields.

The field's metadata has the name of Arrow's canonical extension type (`arrow.parquet.variant`), as for an
unregistered extension type. Libraries pass it on without knowing the extension type.
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
    """An Arrow field of variants, for a table that does not have the column yet.

    Args:
        name: the name of the column or struct field; `element` in a list, `value` in a map.
        nullable: as in Arrow.
    """
    return pa.field(name, VARIANT_TYPE, nullable=nullable, metadata=dict(MARK))


def is_marked(field: pa.Field) -> bool:
    """Whether a field is marked as a variant, whatever its type is."""
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == EXTENSION_NAME)
    return field.metadata is not None and field.metadata.get(_KEY) == MARK[_KEY]


def storage_of(field: pa.Field) -> pa.DataType:
    """The type of a field without its extension."""
    data_type = field.type
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type
