"""Replaces a table's definition and all its rows by an empty table of another definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow.compute as pc

from delta_core.actions import Action
from delta_core.dml.commit_files import REMOVED_COLUMNS
from delta_core.dml.metadata_update import MetadataUpdate, TableDefinition, plan_metadata_update
from delta_core.dml.post_commit import commit_or_raise
from delta_core.run import DEFAULT_RUN, Run
from delta_core.schema.column_paths import display_path
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.table_features.clustering_domain import DOMAIN as CLUSTERING
from delta_core.table_features.enablement import ProtocolRequest, protocol_for
from delta_core.table_features.internal_properties import (
    ENABLEMENT_TIMESTAMP,
    ENABLEMENT_VERSION,
    IN_COMMIT_TIMESTAMPS,
)
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.file_actions import remove_actions

_KEPT = (IN_COMMIT_TIMESTAMPS, ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP)
"""Properties that stay: they affect the times of future commits, not the definition that is replaced."""


def replace_table(
    snapshot: Snapshot,
    *,
    schema: StructType,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str | Sequence[str]] | None = None,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    or_create: bool = False,
    run: Run = DEFAULT_RUN,
) -> Committed:
    """Replace the table by an empty table of this definition, in one commit, like REPLACE TABLE.

    The table keeps its id, its history and its files, so older versions stay readable and a restore brings
    them back. Properties that are not given are unset, except those of in-commit timestamps. The protocol is
    never downgraded.

    Args:
        snapshot: the newest version of the table.
        schema: the new schema.
        partition_by: the new partition columns.
        cluster_by: the new clustering columns, each a name or path.
        configuration: the new table properties.
        name: the new name.
        description: the new description.
        or_create: whether the history names it CREATE OR REPLACE TABLE.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        InvalidTableError: the table is append-only.
        SchemaError: the schema is not valid, or the table cannot be clustered by these columns.
        UnsupportedTableFeatureError: the table or a property requires an unsupported feature.
        ConcurrentModificationError: another writer changed the table meanwhile.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    definition = TableDefinition(
        partition_by=partition_by,
        cluster_by=cluster_by,
        configuration=configuration,
        name=name,
        description=description,
    )
    change = plan_metadata_update(None, data_schema=schema, definition=definition, now_ms=run.now_ms())
    metadata = replace(
        change.metadata,
        id=snapshot.metadata.id,
        configuration={**_kept(snapshot), **change.configuration},
        created_time_ms=snapshot.metadata.created_time_ms,
    )
    request = ProtocolRequest.of(configuration or {})
    if cluster_by is not None:
        request = replace(request, features=request.features | {"clustering"}, clusters=True)
    protocol = protocol_for(change.schema, metadata.configuration, current=snapshot.protocol, request=request)
    removed = snapshot.files.to_table(columns=REMOVED_COLUMNS)
    parameters = _parameters(change, cluster_by, description)
    if or_create:
        transaction = run.begin(
            snapshot, operation="CREATE OR REPLACE TABLE", operation_parameters=parameters
        )
    else:
        transaction = run.begin(snapshot, operation="REPLACE TABLE", operation_parameters=parameters)
    # Rows that other writers add before the commit would not fit the new definition.
    transaction.read_predicate(None)
    actions: list[Action] = [metadata, *_clustering(snapshot, change)]
    if protocol != snapshot.protocol:
        actions.insert(0, protocol)
    transaction.add(*actions)
    transaction.add(*remove_actions(removed, deletion_timestamp_ms=run.now_ms()))
    transaction.set_metrics(
        {
            "numRemovedFiles": removed.num_rows,
            "numRemovedBytes": pc.sum(removed.column("size_bytes"), min_count=0).as_py(),
        }
    )
    return commit_or_raise(transaction, run.progress)


def _kept(snapshot: Snapshot) -> dict[str, str]:
    before = snapshot.metadata.configuration
    return {key: before[key] for key in _KEPT if key in before}


def _clustering(snapshot: Snapshot, change: MetadataUpdate) -> list[Action]:
    """The clustering domain of the new definition; its removal when the old table had clustering columns."""
    chosen: list[Action] = [
        action for action in change.actions if getattr(action, "domain", None) == CLUSTERING
    ]
    before = clustering_of(snapshot)
    if chosen or before is None:
        return chosen
    return [replace(before, columns=()).action()]


def _parameters(
    change: MetadataUpdate, cluster_by: Sequence[str | Sequence[str]] | None, description: str | None
) -> dict[str, object]:
    columns = [display_path([c] if isinstance(c, str) else c) for c in cluster_by or ()]
    return {
        "partitionBy": list(change.partition_columns),
        **({} if cluster_by is None else {"clusterBy": columns}),
        "properties": dict(change.configuration),
        "description": description,
        "isManaged": False,
    }
