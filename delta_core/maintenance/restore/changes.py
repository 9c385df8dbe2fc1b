"""What a restore changes besides rows: columns, partitioning, properties; and what it does not: features."""

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
    """One thing that has another value afterwards; None where it is not there.

    Attributes:
        name: a column, nested ones with dots; a property's key; `name`, `description` or `partition columns`.
    """

    name: str
    before: str | None
    after: str | None

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return {"name": self.name, "from": self.before, "to": self.after}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanges:
    """How the table's definition changes.

    Attributes:
        columns: types, with ` not null` where it applies.
        properties: properties, and the table's own name, description and partitioning.
        kept_features: table features that the target version did not have and that stay.
        returning_features: those that it had and that were dropped since: they come back.
        domains: names of the metadata domains that change back.
    """

    columns: tuple[Change, ...] = ()
    properties: tuple[Change, ...] = ()
    kept_features: tuple[str, ...] = ()
    returning_features: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()

    @property
    def beyond_metadata(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """What changes in the protocol and in the domains; None for nothing."""
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
    """What changes in the definition when `target` comes back in place of `snapshot`."""
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
    """Each column and each field of a struct; a struct stands for itself, its fields say the rest."""
    found = {}
    for field in schema:
        nested = isinstance(field.data_type, StructType)
        kind = "struct" if nested else str(field.data_type)
        found[prefix + field.name] = kind if field.nullable else f"{kind} not null"
        if isinstance(field.data_type, StructType):
            found.update(_columns(field.data_type, f"{prefix}{field.name}."))
    return found


def _properties(metadata: Metadata) -> dict[str, str]:
    own = {"name": metadata.name, "description": metadata.description}
    own["partition columns"] = ", ".join(metadata.partition_columns) or None
    return {**{key: value for key, value in own.items() if value is not None}, **metadata.configuration}
