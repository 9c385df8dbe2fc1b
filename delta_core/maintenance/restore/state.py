"""The table definition and the metadata domains after a restore.

Schema, partitioning, properties and metadata domains are restored. High-water marks are not restored, since a
number that is assigned twice would identify two objects: column ids, row ids, values of identity columns, and
the versions and times since which a property holds. The protocol is never downgraded, since readers may rely
on it and files of other versions need it (PROTOCOL.md, "Protocol Evolution").
"""

from __future__ import annotations

from dataclasses import replace

from delta_core.actions import DomainMetadata, Metadata, Protocol
from delta_core.maintenance.domains import domain_changes
from delta_core.schema.json import schema_to_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.identity import keep_high_water_marks
from delta_core.table_features.internal_properties import restored_configuration
from delta_core.table_features.upgrade import merged
from delta_core.transaction.in_commit_time import with_enablement_properties


def restored_protocol(snapshot: Snapshot, target: Snapshot) -> Protocol:
    """The present protocol, with the target's features that were dropped since."""
    return merged(snapshot.protocol, target.protocol)


def restored_metadata(snapshot: Snapshot, target: Snapshot) -> Metadata:
    """The target's metadata with the table's present id and the present high-water marks."""
    restored = replace(
        target.metadata,
        id=snapshot.metadata.id,
        schema_string=_schema(snapshot, target),
        configuration=restored_configuration(snapshot.metadata.configuration, target.metadata.configuration),
    )
    return with_enablement_properties(snapshot, restored_protocol(snapshot, target), restored)


def restored_domains(snapshot: Snapshot, target: Snapshot) -> tuple[DomainMetadata, ...]:
    """The domains that change: those of the target, and removals of domains that were added since."""
    return tuple(domain_changes(snapshot.domain_metadata, target.domain_metadata))


def _schema(snapshot: Snapshot, target: Snapshot) -> str:
    schema = keep_high_water_marks(target.schema, snapshot.schema)
    if schema == target.schema:
        return target.metadata.schema_string
    # An equal schema with other JSON text would change the metadata, which conflicts with every commit.
    return snapshot.metadata.schema_string if schema == snapshot.schema else schema_to_json(schema)
