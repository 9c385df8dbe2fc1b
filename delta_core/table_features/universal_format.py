"""What a table must be whose metadata another engine keeps in other formats, too.

Nothing of that is written here. But writers that do it refuse every commit to a table that cannot be
converted, so the property is not left on such a table.
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
_NOT_HUDIS = (BYTE, SHORT, TIMESTAMP_NTZ, VOID)


def require_universal_format(metadata: Metadata, *, previous: Metadata | None = None) -> None:
    """Refuse metadata that names a format which the table cannot be converted to.

    Args:
        metadata: the table's, as it is to be.
        previous: as it was: what was wrong already does not stand in the way of other changes.

    Raises:
        InvalidTablePropertyError: names the format, and what is in its way.
    """
    if not metadata.configuration.get(UNIVERSAL_FORMATS.key, "").strip():
        return
    before = set() if previous is None else set(_obstacles(previous))
    for name, cause, fix in _obstacles(metadata):
        if (name, cause, fix) not in before:
            raise InvalidTablePropertyError(
                f"{UNIVERSAL_FORMATS.key} cannot name {name} here.", cause=cause, fix=fix
            )


def _obstacles(metadata: Metadata) -> Iterator[tuple[str, str, str]]:
    """The format, why it is not possible, and what to do."""
    # Leniently: what another writer left there is no reason against every other change.
    named = [name.strip() for name in metadata.configuration.get(UNIVERSAL_FORMATS.key, "").split(",")]
    if "iceberg" in named and not any(_is_true(metadata, key) for key in _COMPATIBILITIES):
        yield (
            "iceberg",
            "No Iceberg compatibility is turned on, so files need not be ones that Iceberg reads.",
            f"Set {_COMPATIBILITIES[0]} to true with it, or take iceberg out first.",
        )
    if "hudi" not in named:
        return
    if _is_true(metadata, ENABLE_DELETION_VECTORS.key):
        yield (
            "hudi",
            "Hudi knows no deletion vectors.",
            f"Set {ENABLE_DELETION_VECTORS.key} to false with it, or take hudi out first.",
        )
    for found in types_within(schema_from_json(metadata.schema_string)):
        if found in _NOT_HUDIS:
            yield (
                "hudi",
                f"Hudi has no type {found}, and a column is of it.",
                "Drop the column, or take hudi out.",
            )


def _is_true(metadata: Metadata, key: str) -> bool:
    return metadata.configuration.get(key, "false").strip().lower() == "true"
