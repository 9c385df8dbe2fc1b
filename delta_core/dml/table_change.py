"""What a write does to the table's definition: create it, evolve its schema, or leave it alone.

Pure: decided from the snapshot and the caller's wishes before any data is written, and again when a
concurrent creator got there first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from delta_core.actions import Action, Metadata, Protocol
from delta_core.dml.known_properties import refuse_unknown_properties
from delta_core.errors import ConfigurationError, SchemaError, SchemaMismatchError
from delta_core.schema.arrow import to_arrow
from delta_core.schema.enforcement import schema_problems
from delta_core.schema.evolution import merge_schemas, require_writable_void, validate_schema
from delta_core.schema.json import schema_to_json
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.enablement import (
    ProtocolRequest,
    evolved_protocol,
    protocol_for,
    refuse_unsupported_definition,
)
from delta_core.table_features.internal_properties import refuse_internal_properties
from delta_core.table_features.table_properties import TableProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """What a caller may say about a table that its write creates or changes.

    Attributes:
        partition_by: partition columns; None takes the existing table's, or none.
        configuration: table properties of a new table; for an existing one they must be set already.
        name, description: of a new table; ignored for an existing one.
        merge_schema: add the data's new columns to the table.
        overwrite_schema: replace the table's schema (and partitioning) by the data's.
    """

    partition_by: Sequence[str] | None = None
    configuration: Mapping[str, str] | None = None
    name: str | None = None
    description: str | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """The table as the write will leave it.

    Attributes:
        schema: what the written data must conform to.
        actions: the `protocol` and `metaData` actions that the commit must carry; empty when neither
            changes.
    """

    schema: StructType
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    actions: tuple[Action, ...]

    @property
    def properties(self) -> TableProperties:
        """The table's typed properties."""
        return TableProperties.of(self.configuration)


def plan_table_change(
    snapshot: Snapshot | None,
    *,
    data_schema: StructType,
    definition: TableDefinition,
    now_ms: int,
    may_merge: bool = True,
) -> TableChange:
    """Decide what becomes of the table's definition.

    Args:
        snapshot: the table; None when it is to be created.
        data_schema: the schema of the rows to be written.
        definition: the caller's wishes.
        now_ms: creation time of a new table.
        may_merge: whether the caller has a `schema_mode` at all; else no error advises it.

    Raises:
        SchemaMismatchError: the data does not fit, or `partition_by` is not the table's.
        SchemaEvolutionError: a merge would need a type change that loses values.
        SchemaError: the resulting schema is not valid.
        ConfigurationError: properties differ from the existing table's, or the schema modes contradict.
        InvalidTablePropertyError: a new table's property is unknown or has a value that it cannot take.
    """
    if definition.merge_schema and definition.overwrite_schema:
        raise ConfigurationError(
            "A schema cannot be merged and overwritten at once.", fix="Choose one schema_mode."
        )
    if snapshot is None:
        return _creation(data_schema, definition, now_ms)
    _check_configuration(snapshot, definition)
    if definition.overwrite_schema:
        return _replacement(snapshot, data_schema, definition)
    _check_partitioning(snapshot, definition)
    schema = snapshot.schema
    if definition.merge_schema:
        schema = merge_schemas(schema, data_schema)
    problems = schema_problems(schema, to_arrow(data_schema))
    if problems:
        raise SchemaMismatchError(
            "The data does not fit the table's schema: " + "; ".join(problems) + ".",
            cause=f"The table has the columns {', '.join(f'{f.name} {f.data_type}' for f in schema)}.",
            fix=_mending(schema, data_schema, may_merge=may_merge),
        )
    return _changed(snapshot, schema, tuple(snapshot.partition_columns))


def _mending(schema: StructType, data_schema: StructType, *, may_merge: bool) -> str:
    """What to do about data that does not fit: a merge where that alone would do, as for new columns."""
    try:
        merged = merge_schemas(schema, data_schema)
        merge_is_enough = not schema_problems(merged, to_arrow(data_schema))
    except SchemaError:
        merge_is_enough = False
    if not merge_is_enough:
        return "Cast the columns to the table's types, and rename, add or drop those that it has otherwise."
    if may_merge:
        return "Rename or drop these columns, or add them to the table with schema_mode='merge'."
    return "Rename or drop these columns, or add them to the table first with DeltaTable.alter.add_columns."


def canonical_partition_columns(schema: StructType, partition_by: Sequence[str]) -> tuple[str, ...]:
    """The partition columns in the schema's spelling."""
    found = ((name, schema.find(name)) for name in partition_by)
    return tuple(field.name if field is not None else name for name, field in found)


def _creation(data_schema: StructType, definition: TableDefinition, now_ms: int) -> TableChange:
    partition_columns = canonical_partition_columns(data_schema, definition.partition_by or ())
    request = ProtocolRequest.of(definition.configuration or {})
    configuration = dict(request.properties)
    _check_new(data_schema, partition_columns)
    refuse_internal_properties(configuration)
    TableProperties.of(configuration).validate()
    metadata = Metadata(
        id=str(uuid4()),
        schema_string=schema_to_json(data_schema),
        partition_columns=partition_columns,
        configuration=configuration,
        name=definition.name,
        description=definition.description,
        created_time_ms=now_ms,
    )
    refuse_unsupported_definition(data_schema, configuration, request=request)
    refuse_unknown_properties(configuration)
    return TableChange(
        schema=data_schema,
        partition_columns=partition_columns,
        configuration=configuration,
        actions=(protocol_for(data_schema, configuration, request=request), metadata),
    )


def _replacement(snapshot: Snapshot, data_schema: StructType, definition: TableDefinition) -> TableChange:
    wanted = definition.partition_by
    if wanted is None:
        wanted = [name for name in snapshot.partition_columns if data_schema.find(name) is not None]
    partition_columns = canonical_partition_columns(data_schema, wanted)
    _check_new(data_schema, partition_columns)
    return _changed(snapshot, data_schema, partition_columns)


def _changed(snapshot: Snapshot, schema: StructType, partition_columns: tuple[str, ...]) -> TableChange:
    metadata = snapshot.metadata
    actions: list[Action] = []
    if schema != snapshot.schema or partition_columns != tuple(snapshot.partition_columns):
        _check_new(schema, partition_columns)
        actions.append(
            replace(metadata, schema_string=schema_to_json(schema), partition_columns=partition_columns)
        )
        protocol: Protocol = evolved_protocol(
            snapshot.protocol, metadata.configuration, before=snapshot.schema, after=schema
        )
        if protocol != snapshot.protocol:
            actions.insert(0, protocol)
    return TableChange(
        schema=schema,
        partition_columns=partition_columns,
        configuration=metadata.configuration,
        actions=tuple(actions),
    )


def _check_new(schema: StructType, partition_columns: Sequence[str]) -> None:
    validate_schema(schema, partition_columns)
    require_writable_void(schema)


def _check_partitioning(snapshot: Snapshot, definition: TableDefinition) -> None:
    if definition.partition_by is None:
        return
    wanted = canonical_partition_columns(snapshot.schema, definition.partition_by)
    if wanted == tuple(snapshot.partition_columns):
        return
    raise SchemaMismatchError(
        f"The table is partitioned by {_listed(snapshot.partition_columns)}, "
        f"not by {_listed(definition.partition_by)}.",
        cause="A write keeps the partitioning of the table that it writes to.",
        fix="Leave partition_by out, or overwrite the whole table with schema_mode='overwrite'.",
    )


def _check_configuration(snapshot: Snapshot, definition: TableDefinition) -> None:
    if not definition.configuration:
        return
    current = snapshot.metadata.configuration
    request = ProtocolRequest.of(definition.configuration)
    differing = sorted(k for k, v in request.properties.items() if current.get(k) != v)
    if not request.is_met_by(snapshot.protocol):
        differing += sorted(set(definition.configuration) - set(request.properties))
    if differing:
        raise ConfigurationError(
            f"The table exists and has other values for {', '.join(differing)}.",
            cause="configuration describes a table to be created.",
            fix="Leave configuration out, or set the properties with DeltaTable.alter.set_properties.",
        )


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})" if names else "nothing"
