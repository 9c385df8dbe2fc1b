"""Checks whether the files of earlier commits can be read with the table definition of a later version."""

from __future__ import annotations

from collections.abc import Sequence

from delta_core.actions import Action, Metadata, Protocol
from delta_core.errors import TableChangedError
from delta_core.schema.column_mapping import ColumnMapping, ColumnMappingMode
from delta_core.schema.types import ArrayType, DataType, MapType, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import table_schema
from delta_core.table_features.support import require_read_support
from delta_core.table_features.type_widening import widens

TableDefinition = tuple[Protocol, Metadata]
"""The protocol and metadata that determine how the files of a version are read."""


def definition_after(definition: TableDefinition, actions: Sequence[Action]) -> TableDefinition:
    """The table definition after one more commit; the same object when the commit does not change it."""
    protocol, metadata = definition
    for action in actions:
        protocol = action if isinstance(action, Protocol) else protocol
        metadata = action if isinstance(action, Metadata) else metadata
    return definition if (protocol, metadata) == definition else (protocol, metadata)


def require_compatible_definition(
    snapshot: Snapshot, version: int, definition: TableDefinition, *, through_scan: bool, same_columns: bool
) -> None:
    """Refuse a version whose files cannot be read with the table definition of a later version.

    Args:
        snapshot: the later version.
        version: the earlier version, for messages.
        definition: the earlier version's protocol and metadata.
        through_scan: as in `Snapshot.require_readable`.
        same_columns: also refuse when a column was dropped, or has a type that does not hold its old values.

    Raises:
        UnsupportedTableFeatureError: the version needs a feature that is not supported.
        TableChangedError: the files of the version have columns with other names, or columns dropped later.
    """
    protocol, metadata = definition
    require_read_support(
        protocol,
        metadata,
        has_deletion_vectors=through_scan,
        through_scan=through_scan,
        operation=f"read the files of version {version}",
    )
    then, now = ColumnMapping.of(metadata.configuration), snapshot.column_mapping
    problem: str | None = None
    # Enabling the mode `name` keeps the column names in files as they were; the check below verifies it.
    enabled = then.mode is ColumnMappingMode.NONE and now.mode is ColumnMappingMode.NAME
    if then.mode is not now.mode and not enabled:
        problem = f"Its column mapping mode is {then.mode}, and the later version's mode is {now.mode}."
    elif same_columns or enabled:
        where = f"Version {version} of {snapshot.store.uri!r}"
        lost = _lost(table_schema(metadata, where=where), snapshot.schema, (then, now))
        problem = f"Its schema has {lost}, which the later schema does not have." if lost else None
    if problem is not None:
        raise TableChangedError(
            f"The changes of version {version} of {snapshot.store.uri!r} are not compatible with version "
            f"{snapshot.version}.",
            cause=problem,
            fix="Request the changes up to the version before the schema was replaced.",
        )


def _lost(
    then: DataType, now: DataType, mappings: tuple[ColumnMapping, ColumnMapping], path: str = ""
) -> str | None:
    """The first column of `then` that `now` lacks, or has with a type that does not hold its values."""
    if isinstance(then, StructType) and isinstance(now, StructType):
        old, new = mappings
        by_name = {new.physical_name(field).casefold(): field for field in now}
        for field in then:
            name = f"{path}.{field.name}" if path else field.name
            same_field = by_name.get(old.physical_name(field).casefold())
            if same_field is None:
                return name
            lost = _lost(field.data_type, same_field.data_type, mappings, name)
            if lost is not None:
                return lost
        return None
    if isinstance(then, ArrayType) and isinstance(now, ArrayType):
        return _lost(then.element_type, now.element_type, mappings, f"{path}.element")
    if isinstance(then, MapType) and isinstance(now, MapType):
        return _lost(then.key_type, now.key_type, mappings, f"{path}.key") or _lost(
            then.value_type, now.value_type, mappings, f"{path}.value"
        )
    return None if then == now or widens(then, now) else f"{path} as {then}"
