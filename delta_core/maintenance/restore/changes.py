"""The changes of a restore to the table definition, and the features that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delta_core.actions import Metadata
from delta_core.maintenance.restore.state import restored_domains, restored_metadata, restored_protocol
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import reader_features, writer_features
from delta_core.table_features.upgrade import supported_features


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed value of the table definition; None means that the value does not exist.

    Attributes:
        name: a column, with dots for nested columns; a property key; `name`, `description` or
            `partition columns`.
        before, after: the values before and after the restore.
    """

    name: str
    before: str | None
    after: str | None

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return {"name": self.name, "from": self.before, "to": self.after}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanges:
    """The changes to the table definition.

    Attributes:
        columns: changed columns; a value is the type, with ` not null` if the column is not nullable.
        properties: changed properties, and the table's name, description and partitioning.
        kept_features: table features that the target version did not have and that stay.
        returning_features: table features of the target version that were dropped since and are added again.
        domains: names of the metadata domains that are restored.
    """

    columns: tuple[Change, ...] = ()
    properties: tuple[Change, ...] = ()
    kept_features: tuple[str, ...] = ()
    returning_features: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()

    @property
    def beyond_metadata(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The changes in the protocol and in the domains; None without changes."""
        changes = (self.returning_features, self.domains)
        return changes if any(changes) else None

    def to_json(self) -> dict[str, Any]:
        """The changes as a JSON object."""
        return {
            "columns": [change.to_json() for change in self.columns],
            "properties": [change.to_json() for change in self.properties],
            "kept_features": list(self.kept_features),
            "returning_features": list(self.returning_features),
            "domains": list(self.domains),
        }


def table_changes(snapshot: Snapshot, target: Snapshot) -> TableChanges:
    """The changes to the table definition when `target` is restored over `snapshot`."""
    protocols = [reader_features(s.protocol) | writer_features(s.protocol) for s in (snapshot, target)]
    return TableChanges(
        columns=_changes(_columns(snapshot.schema), _columns(target.schema)),
        properties=_changes(_properties(snapshot.metadata), _properties(restored_metadata(snapshot, target))),
        kept_features=tuple(sorted(protocols[0] - protocols[1])),
        returning_features=tuple(
            sorted(
                supported_features(restored_protocol(snapshot, target))
                - supported_features(snapshot.protocol)
            )
        ),
        domains=tuple(item.domain for item in restored_domains(snapshot, target)),
    )


def _changes(before: dict[str, str], after: dict[str, str]) -> tuple[Change, ...]:
    names = [*before, *(name for name in after if name not in before)]
    return tuple(
        Change(name=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    )


def _columns(schema: StructType, prefix: str = "") -> dict[str, str]:
    """The types of all columns and struct fields by name; a struct itself has the type `struct`."""
    types = {}
    for field in schema:
        nested = isinstance(field.data_type, StructType)
        kind = "struct" if nested else str(field.data_type)
        types[prefix + field.name] = kind if field.nullable else f"{kind} not null"
        if isinstance(field.data_type, StructType):
            types.update(_columns(field.data_type, f"{prefix}{field.name}."))
    return types


def _properties(metadata: Metadata) -> dict[str, str]:
    own = {"name": metadata.name, "description": metadata.description}
    own["partition columns"] = ", ".join(metadata.partition_columns) or None
    return {**{key: value for key, value in own.items() if value is not None}, **metadata.configuration}
