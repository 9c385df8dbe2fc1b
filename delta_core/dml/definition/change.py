"""The common part of all changes of a table definition: check the idempotency key, then commit.

With an idempotency key, a repeated call changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from delta_core.actions import Action, Metadata
from delta_core.dml.definition.iceberg_files import newly_enabled_compatibilities, require_iceberg_files
from delta_core.dml.post_commit import commit_or_raise
from delta_core.run import Run
from delta_core.schema.evolution import warn_of_void
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.change_data import refuse_change_columns
from delta_core.table_features.enablement import (
    ProtocolRequest,
    protocol_for,
    refuse_unsupported_definition,
)
from delta_core.table_features.table_properties import TableProperties
from delta_core.table_features.universal_format import require_universal_format
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.isolation import IsolationLevel


def commit_change(
    snapshot: Snapshot,
    *,
    operation: str,
    parameters: Mapping[str, Any],
    metadata: Metadata | None = None,
    request: ProtocolRequest | None = None,
    actions: Sequence[Action] = (),
    reads_rows: bool = False,
    run: Run,
) -> Committed:
    """Commit new metadata and further actions, and raise the protocol if they need a higher one.

    Args:
        snapshot: the version of the table.
        operation: the operation's name in the history.
        parameters: the operation's parameters in the history.
        metadata: the new metadata; None keeps the table's metadata.
        request: protocol versions and features that are requested by name.
        actions: further actions of the commit.
        reads_rows: the operation read every row of the table, so a concurrent commit that adds rows is a
            conflict.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        UnsupportedTableFeatureError: the definition requires a feature that this library does not write.
        SchemaError: the change data feed is enabled, and a column has the name of one of its columns.
        IcebergCompatibilityError: the table or its files would break a rule of an Iceberg compatibility.
        InvalidTablePropertyError: the table could not be converted to a universal format that it enables.
        CommitError: the commit failed. The subclass depends on the reason.
    """
    defined = snapshot.metadata if metadata is None else metadata
    schema = schema_from_json(defined.schema_string)
    refuse_unsupported_definition(schema, defined.configuration, request=request)
    if defined.configuration != snapshot.metadata.configuration:
        refuse_change_columns(schema, defined.configuration)
    if defined is not snapshot.metadata:
        require_universal_format(defined, previous=snapshot.metadata)
    if defined.schema_string != snapshot.metadata.schema_string:
        warn_of_void(snapshot.schema, schema)
    protocol = protocol_for(schema, defined.configuration, current=snapshot.protocol, request=request)
    transaction = run.begin(
        snapshot,
        operation=operation,
        operation_parameters=parameters,
        # Rows that other writers add before the commit were not read, so no blind append may be ignored.
        isolation=IsolationLevel.SERIALIZABLE if reads_rows else None,
    )
    if reads_rows:
        transaction.read_predicate(None)
    if protocol != snapshot.protocol:
        transaction.add(protocol)
    if metadata is not None:
        transaction.add(metadata)
    transaction.add(*actions)
    enabled = newly_enabled_compatibilities(snapshot, protocol, defined)
    if enabled and run.already_applied(snapshot) is None:
        # Check the rules that need only the log before any file is opened.
        transaction.prepare()
        require_iceberg_files(snapshot, protocol, defined, access=run.access)
    return commit_or_raise(transaction, run.progress)


def with_schema(snapshot: Snapshot, schema: StructType) -> Metadata:
    """The table's metadata, with `schema` in place of its schema."""
    return replace(snapshot.metadata, schema_string=schema_to_json(schema))


def with_configuration(snapshot: Snapshot, configuration: Mapping[str, str]) -> Metadata:
    """The table's metadata, with `configuration` in place of all its properties.

    Raises:
        InvalidTablePropertyError: a property has a value that it cannot take.
    """
    TableProperties.of(configuration).validate()
    return replace(snapshot.metadata, configuration=dict(configuration))


def any_has_prefix(keys: Iterable[str], prefix: str) -> bool:
    """Whether a key begins with the lower-case prefix, ignoring case."""
    return any(key.lower().startswith(prefix) for key in keys)
