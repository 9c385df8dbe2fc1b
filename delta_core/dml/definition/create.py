"""Creates empty tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delta_core.dml.metadata_update import TableDefinition, plan_metadata_update
from delta_core.dml.post_commit import commit_and_checkpoint
from delta_core.errors import TableExistsError
from delta_core.run import DEFAULT_RUN, Run
from delta_core.schema.column_paths import display_path
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_result import Committed, Conflict, raise_for_result


def create_table(
    store: LogStore,
    *,
    schema: StructType,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str | Sequence[str]] | None = None,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    run: Run = DEFAULT_RUN,
) -> Committed:
    """Create an empty table. Two requests when no other writer interferes: a listing and the commit.

    A directory `name=value` on the path costs one more listing.

    Returns:
        The commit, or `AlreadyApplied` when the table exists and has the idempotency key.

    Raises:
        TableExistsError: the table already exists, or another writer creates it at the same time.
        NestedTableError: the directory belongs to another table; see `require_separate_directory`.
        SchemaError: the schema is not valid, or the table cannot be clustered by these columns.
        UnsupportedTableFeatureError: a property requires an unsupported feature.
    """
    # A string is one name, not a sequence of letters.
    cluster_by = [cluster_by] if isinstance(cluster_by, str) else cluster_by
    verified_at_ms = run.now_ms()
    if Snapshot.exists(store):
        applied = (
            None if run.commit.txn is None else run.already_applied(Snapshot.load(store, clock=run.clock))
        )
        if applied is None:
            raise _exists(store)
        return applied
    definition = TableDefinition(
        partition_by=partition_by,
        cluster_by=cluster_by,
        configuration=configuration,
        name=name,
        description=description,
    )
    change = plan_metadata_update(None, data_schema=schema, definition=definition, now_ms=run.now_ms())
    transaction = run.create(
        store,
        operation_parameters={
            "partitionBy": list(change.partition_columns),
            **_cluster_by(cluster_by),
            "properties": dict(change.configuration),
            "description": description,
        },
        verified_at_ms=verified_at_ms,
    )
    result = commit_and_checkpoint(transaction.add(*change.actions))
    if isinstance(result, Conflict):
        raise _exists(store) from result.error
    return raise_for_result(result)


def _cluster_by(columns: Sequence[str | Sequence[str]] | None) -> dict[str, list[str]]:
    return (
        {}
        if columns is None
        else {"clusterBy": [display_path([c] if isinstance(c, str) else c) for c in columns]}
    )


def _exists(store: LogStore) -> TableExistsError:
    return TableExistsError(
        f"A Delta table already exists at {store.uri}.",
        fix="Open it with DeltaTable, or choose another location.",
    )
