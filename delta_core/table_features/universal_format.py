"""The requirements for `delta.universalFormat.enabledFormats`.

This library does not write metadata of other formats. But writers that do refuse every commit to a table that
cannot be converted, so the property is refused for such a table.
"""

from __future__ import annotations

from collections.abc import Iterator

from delta_core.actions import Metadata
from delta_core.errors import InvalidTablePropertyError
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import BYTE, SHORT, TIMESTAMP_NTZ, VOID
from delta_core.table_features.enablement import types_within
from delta_core.table_features.table_properties import ENABLE_DELETION_VECTORS, UNIVERSAL_FORMATS

_COMPATIBILITIES = tuple(f"delta.enableIcebergCompatV{number}" for number in (2, 1, 3))
_UNSUPPORTED_BY_HUDI = (BYTE, SHORT, TIMESTAMP_NTZ, VOID)


def require_universal_format(metadata: Metadata, *, previous: Metadata | None = None) -> None:
    """Refuse metadata with a format that the table cannot be converted to.

    Args:
        metadata: the table's new metadata.
        previous: the table's current metadata; its existing problems do not prevent other changes.

    Raises:
        InvalidTablePropertyError: the message has the format, and the obstacle.
    """
    if not metadata.configuration.get(UNIVERSAL_FORMATS.key, "").strip():
        return
    before = set() if previous is None else set(_obstacles(previous))
    for name, cause, fix in _obstacles(metadata):
        if (name, cause, fix) not in before:
            raise InvalidTablePropertyError(
                f"{UNIVERSAL_FORMATS.key} cannot contain {name} in this table.", cause=cause, fix=fix
            )


def _obstacles(metadata: Metadata) -> Iterator[tuple[str, str, str]]:
    """The obstacles: the format, the cause and the fix of each."""
    # Parsed leniently: an invalid value from another writer must not prevent other changes.
    named = [name.strip() for name in metadata.configuration.get(UNIVERSAL_FORMATS.key, "").split(",")]
    if "iceberg" in named and not any(_is_true(metadata, key) for key in _COMPATIBILITIES):
        yield (
            "iceberg",
            "Iceberg compatibility is not enabled, so Iceberg may not be able to read the files.",
            f"Set {_COMPATIBILITIES[0]} to true as well, or remove iceberg first.",
        )
    if "hudi" not in named:
        return
    if _is_true(metadata, ENABLE_DELETION_VECTORS.key):
        yield (
            "hudi",
            "Hudi does not support deletion vectors.",
            f"Set {ENABLE_DELETION_VECTORS.key} to false as well, or remove hudi first.",
        )
    for data_type in types_within(schema_from_json(metadata.schema_string)):
        if data_type in _UNSUPPORTED_BY_HUDI:
            yield (
                "hudi",
                f"Hudi does not support the type {data_type}, and a column has this type.",
                "Drop the column, or remove hudi.",
            )


def _is_true(metadata: Metadata, key: str) -> bool:
    return metadata.configuration.get(key, "false").strip().lower() == "true"
