"""Changes table properties, name and description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from delta_core.actions import Metadata
from delta_core.dml.definition.change import any_has_prefix, commit_change, with_configuration
from delta_core.dml.definition.columns import table_columns, with_columns
from delta_core.dml.known_properties import refuse_unknown_properties, require_valid_values
from delta_core.errors import ConfigurationError, InvalidTablePropertyError
from delta_core.run import DEFAULT_RUN, Run
from delta_core.schema.column_mapping import MODE_KEY
from delta_core.schema.column_names import STATS_COLUMNS_KEY
from delta_core.schema.json import schema_from_json
from delta_core.schema.mapping_assignment import assign_nested_ids
from delta_core.schema.mapping_modes import change_mode, parse_mode
from delta_core.schema.table_columns import TableColumns
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.table_features.automatic_properties import automatic_properties
from delta_core.table_features.clustering_domain import require_statistics
from delta_core.table_features.enablement import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    ProtocolRequest,
    property_strings,
)
from delta_core.table_features.internal_properties import (
    refuse_internal_properties,
    refuse_unset_of_mapping,
)
from delta_core.table_features.stats_columns import require_stats_columns
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.row_ids import FEATURE as ROW_TRACKING
from delta_core.transaction.row_ids import enables_row_tracking


def set_properties(
    snapshot: Snapshot, properties: Mapping[str, str], /, *, run: Run = DEFAULT_RUN
) -> Committed:
    """Set table properties.

    `delta.columnMapping.mode = name` gives every column an id, and its current name as physical name, in the
    same commit.

    `delta.enableRowTracking = true` needs row ids for all existing rows. An empty table, or a table whose
    rows all have ids, gets names for its columns of materialized row ids. In other tables assign row ids
    first (`enable_row_tracking`).

    `delta.enableIcebergCompatV1` and `delta.enableIcebergCompatV2` need column mapping, and files that comply
    with the compatibility. The footer of every live file is read.

    `delta.feature.<name> = supported`, `delta.minReaderVersion` and `delta.minWriterVersion` raise the
    protocol and are not stored. A version lower than the table's changes nothing.

    Raises:
        InvalidTablePropertyError: a property is unknown, can be changed only by the library itself, or has an
            invalid value.
        ConfigurationError: a property is a CHECK constraint. Existing rows must be checked first.
        UnsupportedTableFeatureError: a property enables an unsupported feature.
        IcebergCompatibilityError: the table or one of its files breaks a rule of an Iceberg compatibility.
    """
    properties = property_strings(properties)
    request = ProtocolRequest.of(properties)
    _refuse_constraints(properties)
    refuse_internal_properties(properties)
    configuration = {**snapshot.metadata.configuration, **request.properties}
    if turns_row_tracking_on(snapshot, request.properties):
        configuration |= automatic_properties({ROW_TRACKING}, configuration, is_new=False)
    metadata = with_configuration(snapshot, configuration)
    if MODE_KEY in request.properties:
        mode = parse_mode(request.properties[MODE_KEY])
        mapped = change_mode(table_columns(snapshot), mode)
        # When the table already has the mode, `mapped` has the old properties.
        merged = {**mapped.configuration, **request.properties, MODE_KEY: mode.value}
        metadata = with_columns(metadata, replace(mapped, configuration=merged))
    metadata = _with_nested_ids(metadata)
    if STATS_COLUMNS_KEY in request.properties:
        require_stats_columns(_columns_of(metadata))
    refuse_unknown_properties(set(request.properties) - set(snapshot.metadata.configuration))
    require_valid_values(request.properties)
    clustering = clustering_of(snapshot)
    if clustering is not None and STATS_COLUMNS_KEY in metadata.configuration:
        require_statistics(clustering, schema_from_json(metadata.schema_string), metadata.configuration)
    return commit_change(
        snapshot,
        operation="SET TBLPROPERTIES",
        parameters={"properties": dict(properties)},
        metadata=metadata,
        request=request,
        run=run,
    )


def turns_row_tracking_on(snapshot: Snapshot, properties: Mapping[str, str]) -> bool:
    """Whether these properties enable row tracking that is not enabled yet."""
    before = snapshot.metadata
    after = replace(before, configuration={**before.configuration, **properties})
    return enables_row_tracking(after) and not enables_row_tracking(before)


def _with_nested_ids(metadata: Metadata) -> Metadata:
    """The metadata with ids for elements of arrays and maps when `delta.enableIcebergCompatV2` needs them."""
    columns = _columns_of(metadata)
    if not (columns.is_mapped and columns.is_enabled("delta.enableIcebergCompatV2")):
        return metadata
    completed = assign_nested_ids(columns)
    return metadata if completed == columns else with_columns(metadata, completed)


def _columns_of(metadata: Metadata) -> TableColumns:
    return TableColumns(
        schema=schema_from_json(metadata.schema_string),
        partition_columns=metadata.partition_columns,
        configuration=metadata.configuration,
    )


def unset_properties(snapshot: Snapshot, keys: Sequence[str], *, run: Run = DEFAULT_RUN) -> Committed:
    """Reset table properties to their defaults. A key that is not set is ignored.

    Raises:
        InvalidTablePropertyError: a property can be changed only by the library itself, or stands for a
            protocol version or a feature, which are not stored as properties.
        ConfigurationError: a property is a CHECK constraint.
    """
    _refuse_constraints(keys)
    refuse_internal_properties(keys)
    refuse_unset_of_mapping(keys, snapshot.metadata.configuration)
    _refuse_protocol(keys)
    remaining = {key: value for key, value in snapshot.metadata.configuration.items() if key not in keys}
    return commit_change(
        snapshot,
        operation="UNSET TBLPROPERTIES",
        parameters={"properties": list(keys), "ifExists": True},
        metadata=with_configuration(snapshot, remaining),
        run=run,
    )


def set_description(
    snapshot: Snapshot,
    *,
    name: str | None = None,
    description: str | None = None,
    operation: Literal["SET TABLE DESCRIPTION", "UPDATE TABLE METADATA"] = "SET TABLE DESCRIPTION",
    run: Run = DEFAULT_RUN,
) -> Committed:
    """Set the table's name, its description, or both. None keeps the current value.

    The history has it under delta-spark's name, or under that of `deltalake`, `UPDATE TABLE METADATA`.
    """
    metadata = replace(
        snapshot.metadata,
        name=snapshot.metadata.name if name is None else name,
        description=snapshot.metadata.description if description is None else description,
    )
    return commit_change(
        snapshot,
        operation=operation,
        parameters={"name": metadata.name, "description": metadata.description},
        metadata=metadata,
        run=run,
    )


def _refuse_constraints(keys: Iterable[str]) -> None:
    if any_has_prefix(keys, CONSTRAINT_PREFIX):
        raise ConfigurationError(
            "CHECK constraints cannot be set or removed as table properties.",
            cause="Existing rows must be checked against a constraint first.",
            fix="Use add_constraint and drop_constraint.",
        )


def _refuse_protocol(keys: Iterable[str]) -> None:
    for key in keys:
        versions = (MIN_READER_VERSION.lower(), MIN_WRITER_VERSION.lower())
        if key.lower() in versions or key.lower().startswith(FEATURE_PREFIX):
            raise InvalidTablePropertyError(
                f"{key} cannot be unset.",
                cause="It is not stored as a table property. Setting it raises the protocol, which is never "
                "lowered automatically.",
                fix="Remove it from the keys.",
            )
