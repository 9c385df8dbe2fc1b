"""What a write does to the table's definition: create it, evolve its schema, or leave it alone.

Pure: decided from the snapshot and the caller's wishes before any data is written, and again when a
concurrent creator got there first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from delta_core.actions import Action, Metadata, Protocol
from delta_core.data.constraints import table_constraints
from delta_core.data.steps.identity import with_high_water_marks
from delta_core.data.write_plan import WritePlan
from delta_core.dml.known_properties import refuse_unknown_properties, require_own_values
from delta_core.errors import ConfigurationError, SchemaError, SchemaMismatchError
from delta_core.schema.arrow import to_arrow
from delta_core.schema.column_mapping import MODE_KEY, ColumnMappingMode
from delta_core.schema.column_paths import shown
from delta_core.schema.column_types import merge_columns
from delta_core.schema.column_uses import ColumnUse
from delta_core.schema.enforcement import schema_problems
from delta_core.schema.evolution import merge_schemas, require_writable_void, warn_of_void
from delta_core.schema.field_metadata import with_metadata
from delta_core.schema.json import schema_to_json
from delta_core.schema.mapping_assignment import MAPPING_KEYS, assign_new, assign_overwritten
from delta_core.schema.mapping_check import check_mapping
from delta_core.schema.mapping_modes import parse_mode
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import StructField, StructType
from delta_core.schema.variant_parts import as_the_table_has_them
from delta_core.snapshot.clustering import clustering_of
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.automatic_properties import automatic_properties
from delta_core.table_features.change_data import refuse_change_columns
from delta_core.table_features.clustering_domain import ClusteringColumns, require_statistics
from delta_core.table_features.column_dependencies import column_uses
from delta_core.table_features.defaults import validate_defaults
from delta_core.table_features.enablement import (
    ProtocolRequest,
    evolved_protocol,
    needed_features,
    protocol_for,
    refuse_unsupported_definition,
)
from delta_core.table_features.generation import validate_generated
from delta_core.table_features.iceberg_compat import require_iceberg_compatibility
from delta_core.table_features.identity import validate_identity
from delta_core.table_features.internal_properties import refuse_internal_properties
from delta_core.table_features.row_tracking import refuse_hidden_columns
from delta_core.table_features.stats_columns import keep_stats_columns, require_stats_columns
from delta_core.table_features.table_properties import TableProperties
from delta_core.table_features.universal_format import require_universal_format
from delta_core.table_features.upgrade import supported_features


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """What a caller may say about a table that its write creates or changes.

    Attributes:
        partition_by: partition columns; None takes the existing table's, or none.
        configuration: table properties of a new table; for an existing one they must be set already.
        name, description: of a new table; ignored for an existing one.
        merge_schema: add the data's new columns to the table.
        overwrite_schema: replace the table's schema (and partitioning) by the data's.
        cluster_by: clustering columns, a name or path each; None takes the existing table's, or none.
    """

    partition_by: Sequence[str] | None = None
    configuration: Mapping[str, str] | None = None
    name: str | None = None
    description: str | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    cluster_by: Sequence[str | Sequence[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataUpdate:
    """The table as the write will leave it.

    New columns of a mapped table get physical names at random, so whoever writes files for a change commits
    that same change.

    Attributes:
        schema: what the written data must conform to.
        protocol, metadata: of the table afterwards.
        actions: the `protocol` and `metaData` actions that the commit must carry, and the clustering domain;
            empty when none changes.
        clustered_by: paths of physical names by which the table is clustered.
    """

    schema: StructType
    protocol: Protocol
    metadata: Metadata
    actions: tuple[Action, ...]
    clustered_by: tuple[tuple[str, ...], ...] = ()

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, as the schema spells them."""
        return self.metadata.partition_columns

    @property
    def configuration(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.configuration

    @property
    def properties(self) -> TableProperties:
        """The table's typed properties."""
        return TableProperties.of(self.configuration)

    @property
    def plan(self) -> WritePlan:
        """What rows go through. Raises as `WritePlan.of`."""
        return WritePlan.of(self.protocol, self.metadata, clustered_by=self.clustered_by)

    def with_high_water_marks_of(self, marks: Mapping[str, int]) -> MetadataUpdate:
        """The change with identity columns that have got further, as `WrittenRows.high_water_marks` says."""
        if not marks:
            return self
        schema = with_high_water_marks(self.schema, marks)
        metadata = replace(self.metadata, schema_string=schema_to_json(schema))
        others = tuple(action for action in self.actions if not isinstance(action, Metadata))
        return replace(self, schema=schema, metadata=metadata, actions=(*others, metadata))


def plan_metadata_update(
    snapshot: Snapshot | None,
    *,
    data_schema: StructType,
    definition: TableDefinition,
    now_ms: int,
    may_merge: bool = True,
) -> MetadataUpdate:
    """Decide what becomes of the table's definition.

    Args:
        snapshot: the table; None when it is to be created.
        data_schema: the schema of the rows to be written.
        definition: the caller's wishes.
        now_ms: creation time of a new table.
        may_merge: whether the caller has a `schema_mode` at all; else no error advises it.

    Raises:
        SchemaMismatchError: the data does not fit, or `partition_by` or `cluster_by` is not the table's.
        SchemaEvolutionError: a merge would need a type change that loses values.
        SchemaError: the resulting schema is not valid.
        ConfigurationError: properties differ from the existing table's, or the schema modes contradict.
        InvalidTablePropertyError: a new table's property is unknown or has a value that it cannot take, or
            the columns with statistics that are named do not fit the schema.
        ExpressionError: a new table's constraint does not fit its schema, or is not understood.
        IcebergCompatibilityError: the table would not be what its Iceberg compatibility promises.
    """
    if definition.merge_schema and definition.overwrite_schema:
        raise ConfigurationError(
            "A schema cannot be merged and overwritten at once.", fix="Choose one schema_mode."
        )
    if snapshot is None:
        return _creation(data_schema, definition, now_ms)
    _check_configuration(snapshot, definition)
    _check_clustering(snapshot, definition)
    if definition.overwrite_schema:
        return _replacement(snapshot, data_schema, definition)
    _check_partitioning(snapshot, definition)
    data_schema = as_the_table_has_them(snapshot.schema, data_schema)
    columns = _columns_of(snapshot)
    if definition.merge_schema:
        columns = _merged(snapshot, columns, data_schema)
    schema = columns.schema
    problems = schema_problems(_with_filled_nullable(snapshot, schema), to_arrow(data_schema))
    if problems:
        raise SchemaMismatchError(
            "The data does not fit the table's schema: " + "; ".join(problems) + ".",
            cause=f"The table has the columns {', '.join(f'{f.name} {f.data_type}' for f in schema)}.",
            fix=_mending(schema, data_schema, may_merge=may_merge),
        )
    return _changed(snapshot, columns)


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


def _creation(data_schema: StructType, definition: TableDefinition, now_ms: int) -> MetadataUpdate:
    partition_columns = canonical_partition_columns(data_schema, definition.partition_by or ())
    request = ProtocolRequest.of(definition.configuration or {})
    if definition.cluster_by is not None:
        request = replace(request, features=request.features | {"clustering"}, clusters=True)
    configuration = dict(request.properties)
    refuse_internal_properties(configuration)
    asked = needed_features(data_schema, configuration)
    configuration |= automatic_properties(asked, configuration, is_new=True)
    mode = parse_mode(configuration.get(MODE_KEY, "none"))
    columns = TableColumns(
        schema=data_schema, partition_columns=partition_columns, configuration=configuration
    )
    _check_new(columns)
    TableProperties.of(configuration).validate()
    refuse_unsupported_definition(data_schema, configuration, request=request)
    refuse_unknown_properties(request.properties)
    require_own_values(request.properties)
    _check_filled(columns)
    require_stats_columns(columns)
    table_constraints(data_schema, configuration)
    if mode is not ColumnMappingMode.NONE:
        columns = assign_new(columns, mode)
    warn_of_void(None, columns.schema)
    metadata = Metadata(
        id=str(uuid4()),
        schema_string=schema_to_json(columns.schema),
        partition_columns=partition_columns,
        configuration=dict(columns.configuration),
        name=definition.name,
        description=definition.description,
        created_time_ms=now_ms,
    )
    protocol = protocol_for(columns.schema, columns.configuration, request=request)
    require_iceberg_compatibility(protocol, metadata, operation="create the table")
    require_universal_format(metadata)
    created = MetadataUpdate(
        schema=columns.schema, protocol=protocol, metadata=metadata, actions=(protocol, metadata)
    )
    return created if definition.cluster_by is None else clustered(created, definition.cluster_by)


def _replacement(snapshot: Snapshot, data_schema: StructType, definition: TableDefinition) -> MetadataUpdate:
    wanted = definition.partition_by
    if wanted is None:
        wanted = [name for name in snapshot.partition_columns if data_schema.find(name) is not None]
    before = _columns_of(snapshot)
    columns = TableColumns(
        schema=_continued(snapshot.schema, data_schema),
        partition_columns=canonical_partition_columns(data_schema, wanted),
        configuration=before.configuration,
    )
    _check_new(columns, before=before)
    _check_filled(columns)
    columns = keep_stats_columns(columns)
    return reclustered(
        snapshot, _changed(snapshot, assign_overwritten(before, columns) if before.is_mapped else columns)
    )


def _continued(before: StructType, after: StructType) -> StructType:
    """The new schema, where a column of the same name and type has the metadata that it had.

    An identity column keeps counting where it was, and a default stays; so do comments.
    """

    def kept(field: StructField) -> StructField:
        known = before.find(field.name)
        if known is None or known.data_type != field.data_type:
            return field
        entries = {key: value for key, value in known.metadata.items() if key not in MAPPING_KEYS}
        return with_metadata(field, {**entries, **field.metadata})

    return StructType(tuple(kept(field) for field in after))


def _columns_of(snapshot: Snapshot) -> TableColumns:
    return TableColumns(
        schema=snapshot.schema,
        partition_columns=tuple(snapshot.partition_columns),
        configuration=snapshot.metadata.configuration,
    )


def _merged(snapshot: Snapshot, columns: TableColumns, data_schema: StructType) -> TableColumns:
    iceberg = any(name.startswith("icebergCompat") for name in supported_features(snapshot.protocol))
    return merge_columns(columns, data_schema, uses=_uses(columns), iceberg=iceberg)


def _uses(columns: TableColumns) -> tuple[ColumnUse, ...]:
    """What names columns. Merging drops and renames none, so that clustering does not matter."""
    return column_uses(columns.schema, columns.configuration)


def _with_filled_nullable(snapshot: Snapshot, schema: StructType) -> StructType:
    """The schema, where columns that the table fills by itself may be missing from data."""
    filled = WritePlan.of(snapshot.protocol, snapshot.metadata).filled_columns
    if not filled:
        return schema
    return StructType(tuple(replace(f, nullable=True) if f.name in filled else f for f in schema))


def _changed(snapshot: Snapshot, columns: TableColumns) -> MetadataUpdate:
    before, metadata, protocol = _columns_of(snapshot), snapshot.metadata, snapshot.protocol
    actions: list[Action] = []
    if columns != before:
        _check_new(columns, before=before)
        warn_of_void(before.schema, columns.schema)
        check_mapping(columns)
        metadata = replace(
            metadata,
            schema_string=schema_to_json(columns.schema),
            partition_columns=columns.partition_columns,
            configuration=dict(columns.configuration),
        )
        actions.append(metadata)
        protocol = evolved_protocol(
            snapshot.protocol, metadata.configuration, before=snapshot.schema, after=columns.schema
        )
        if protocol != snapshot.protocol:
            actions.insert(0, protocol)
        require_iceberg_compatibility(
            protocol, metadata, previous=snapshot.metadata, operation="change the schema"
        )
    clustering = clustering_of(snapshot)
    return MetadataUpdate(
        schema=columns.schema,
        protocol=protocol,
        metadata=metadata,
        actions=tuple(actions),
        clustered_by=() if clustering is None else clustering.columns,
    )


def clustered(change: MetadataUpdate, columns: Sequence[str | Sequence[str]]) -> MetadataUpdate:
    """The change of a table that is clustered by these columns from then on.

    Raises:
        SchemaError: the table cannot be clustered by them.
    """
    chosen = ClusteringColumns.choose(change.schema, columns, partition_columns=change.partition_columns)
    require_statistics(chosen, change.schema, change.configuration)
    return replace(change, actions=(*change.actions, chosen.action()), clustered_by=chosen.columns)


def reclustered(snapshot: Snapshot, change: MetadataUpdate) -> MetadataUpdate:
    """The change of a table whose schema is replaced: it stays clustered by columns of the same names.

    Raises:
        SchemaError: the new schema does not have them, or has partition columns besides.
    """
    before = clustering_of(snapshot)
    if before is None or not before.columns:
        return change
    names = before.logical(snapshot.schema)
    try:
        chosen = ClusteringColumns.choose(change.schema, names, partition_columns=change.partition_columns)
    except SchemaError as error:
        raise SchemaError(
            f"The table is clustered by {', '.join(before.names(snapshot.schema))}, "
            "which the new schema does not allow.",
            cause=error.problem,
            fix="Keep these columns as they are, or choose others first with DeltaTable.alter.cluster_by.",
        ) from error
    if chosen.columns == before.columns:
        return change
    action = replace(chosen, other=before.other).action()
    return replace(change, actions=(*change.actions, action), clustered_by=chosen.columns)


def _check_filled(columns: TableColumns) -> None:
    """The rules for columns that the table fills by itself, of a table that is created."""
    validate_defaults(columns.schema)
    validate_identity(columns.schema, columns.partition_columns)
    validate_generated(columns.schema)


def _check_new(columns: TableColumns, *, before: TableColumns | None = None) -> None:
    columns.validated(before=before)
    require_writable_void(columns.schema)
    refuse_change_columns(columns.schema, columns.configuration)
    refuse_hidden_columns(columns.schema, columns.configuration)


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


def _check_clustering(snapshot: Snapshot, definition: TableDefinition) -> None:
    if definition.cluster_by is None:
        return
    current = clustering_of(snapshot)
    before = () if current is None else current.columns
    if ClusteringColumns.choose(snapshot.schema, definition.cluster_by).columns == before:
        return
    raise SchemaMismatchError(
        f"The table is clustered by {_listed([] if current is None else current.names(snapshot.schema))}, "
        f"not by {_listed([one if isinstance(one, str) else shown(one) for one in definition.cluster_by])}.",
        cause="A write keeps the clustering columns of the table that it writes to.",
        fix="Leave cluster_by out, or change the columns with DeltaTable.alter.cluster_by.",
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
