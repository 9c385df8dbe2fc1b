"""Plans how a write changes the table definition: create the table, evolve its schema, or keep it.

The functions make no requests. The update is planned from the snapshot and the caller's arguments before any
data is written, and again when another writer created the table first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from delta_core.actions import Action, Metadata, Protocol
from delta_core.data.constraints import table_constraints
from delta_core.data.steps.identity import with_high_water_marks
from delta_core.data.write_plan import WritePlan
from delta_core.dml.known_properties import refuse_unknown_properties, require_valid_values
from delta_core.errors import ConfigurationError, SchemaError, SchemaMismatchError
from delta_core.schema.arrow import to_arrow
from delta_core.schema.column_mapping import MODE_KEY, ColumnMappingMode
from delta_core.schema.column_paths import display_path
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
from delta_core.schema.variant_structs import match_variants
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
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
    """The caller's arguments about a table that a write creates or changes.

    Attributes:
        partition_by: partition columns. None keeps those of an existing table; a new table then has none.
        configuration: table properties of a new table. An existing table must already have them.
        name, description: of a new table; ignored for an existing table.
        merge_schema: add new columns of the data to the table.
        overwrite_schema: replace the table's schema (and partitioning) by that of the data.
        cluster_by: a name or path for each clustering column. None keeps those of an existing table; a new
            table then has none.
    """

    partition_by: Sequence[str] | None = None
    configuration: Mapping[str, str] | None = None
    name: str | None = None
    description: str | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    cluster_by: Sequence[str | Sequence[str]] | None = None


SAME_DEFINITION = TableDefinition()
"""The arguments of a write that keeps the definition of an existing table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataUpdate:
    """The table definition after a write.

    New columns of a table with column mapping get random physical names. So a writer must commit the same
    update for which it wrote its files.

    Attributes:
        schema: the schema that the written data must fit.
        protocol, metadata: the table definition after the write.
        actions: the `protocol` and `metaData` actions that the commit must contain, and the clustering
            domain. Empty when the definition does not change.
        clustered_by: the clustering columns as paths of physical names.
    """

    schema: StructType
    protocol: Protocol
    metadata: Metadata
    actions: tuple[Action, ...]
    clustered_by: tuple[tuple[str, ...], ...] = ()

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, spelled as in the schema."""
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
        """The write plan for the table's rows. Raises the errors of `WritePlan.of`."""
        return WritePlan.of(self.protocol, self.metadata, clustered_by=self.clustered_by)

    def with_high_water_marks_of(self, marks: Mapping[str, int]) -> MetadataUpdate:
        """This update with new high-water marks of identity columns (`WrittenRows.high_water_marks`)."""
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
    """Plan the table definition after a write.

    Args:
        snapshot: the table; None when it is to be created.
        data_schema: the schema of the rows to be written.
        definition: the caller's arguments.
        now_ms: the creation time of a new table.
        may_merge: whether the caller has a `schema_mode`, so that an error may suggest it.

    Raises:
        SchemaMismatchError: the data does not fit, or `partition_by` or `cluster_by` differs from the table.
        SchemaEvolutionError: a merge would need a type change that loses values.
        SchemaError: the resulting schema is not valid.
        ConfigurationError: properties differ from the existing table's, or the schema modes contradict each
            other.
        InvalidTablePropertyError: a new table's property is unknown or has an invalid value, or the named
            statistics columns do not fit the schema.
        ExpressionError: a new table's constraint cannot be parsed or does not fit its schema.
        IcebergCompatibilityError: the table would break a rule of an active Iceberg compatibility.
    """
    if definition.merge_schema and definition.overwrite_schema:
        raise ConfigurationError(
            "A schema cannot be merged and overwritten at the same time.", fix="Choose one schema_mode."
        )
    if snapshot is None:
        return _creation(data_schema, definition, now_ms)
    _check_configuration(snapshot, definition)
    _check_clustering(snapshot, definition)
    if definition.overwrite_schema:
        return _replacement(snapshot, data_schema, definition)
    _check_partitioning(snapshot, definition)
    data_schema = match_variants(snapshot.schema, data_schema)
    columns = _columns_of(snapshot)
    if definition.merge_schema:
        columns = _merged(snapshot, columns, data_schema)
    schema = columns.schema
    problems = schema_problems(_with_filled_nullable(snapshot, schema), to_arrow(data_schema))
    if problems:
        raise SchemaMismatchError(
            "The data does not fit the table's schema: " + "; ".join(problems) + ".",
            cause=f"The table has the columns {', '.join(f'{f.name} {f.data_type}' for f in schema)}.",
            fix=_fix_for_mismatch(schema, data_schema, may_merge=may_merge),
        )
    return _changed(snapshot, columns)


def _fix_for_mismatch(schema: StructType, data_schema: StructType, *, may_merge: bool) -> str:
    """The advice for data that does not fit. It suggests a merge when that is sufficient."""
    try:
        merged = merge_schemas(schema, data_schema)
        merge_is_enough = not schema_problems(merged, to_arrow(data_schema))
    except SchemaError:
        merge_is_enough = False
    if not merge_is_enough:
        return "Cast the columns to the table's types, and rename, add or drop columns to match the table."
    if may_merge:
        return "Rename or drop these columns, or add them to the table with schema_mode='merge'."
    return "Rename or drop these columns, or add them to the table first with DeltaTable.alter.add_columns."


def canonical_partition_columns(schema: StructType, partition_by: Sequence[str]) -> tuple[str, ...]:
    """The partition columns in the schema's spelling."""
    fields = ((name, schema.find(name)) for name in partition_by)
    return tuple(field.name if field is not None else name for name, field in fields)


def _creation(data_schema: StructType, definition: TableDefinition, now_ms: int) -> MetadataUpdate:
    partition_columns = canonical_partition_columns(data_schema, definition.partition_by or ())
    request = ProtocolRequest.of(definition.configuration or {})
    if definition.cluster_by is not None:
        request = replace(request, features=request.features | {"clustering"}, clusters=True)
    configuration = dict(request.properties)
    refuse_internal_properties(configuration)
    features = needed_features(data_schema, configuration)
    configuration |= automatic_properties(features, configuration, is_new=True)
    mode = parse_mode(configuration.get(MODE_KEY, "none"))
    columns = TableColumns(
        schema=data_schema, partition_columns=partition_columns, configuration=configuration
    )
    _check_new(columns)
    TableProperties.of(configuration).validate()
    refuse_unsupported_definition(data_schema, configuration, request=request)
    refuse_unknown_properties(request.properties)
    require_valid_values(request.properties)
    _check_generated_values(columns)
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
    partition_by = definition.partition_by
    if partition_by is None:
        partition_by = [name for name in snapshot.partition_columns if data_schema.find(name) is not None]
    before = _columns_of(snapshot)
    columns = TableColumns(
        schema=_with_old_metadata(snapshot.schema, data_schema),
        partition_columns=canonical_partition_columns(data_schema, partition_by),
        configuration=before.configuration,
    )
    _check_new(columns, before=before)
    _check_generated_values(columns)
    columns = keep_stats_columns(columns)
    return reclustered(
        snapshot, _changed(snapshot, assign_overwritten(before, columns) if before.is_mapped else columns)
    )


def _with_old_metadata(before: StructType, after: StructType) -> StructType:
    """The new schema, in which columns with the same name and type keep their old field metadata.

    So an identity column continues at its high-water mark, and defaults and comments are kept.
    """

    def merged(field: StructField) -> StructField:
        old = before.find(field.name)
        if old is None or old.data_type != field.data_type:
            return field
        entries = {key: value for key, value in old.metadata.items() if key not in MAPPING_KEYS}
        return with_metadata(field, {**entries, **field.metadata})

    return StructType(tuple(merged(field) for field in after))


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
    """The uses of the columns. Merging drops and renames no column, so clustering is ignored."""
    return column_uses(columns.schema, columns.configuration)


def _with_filled_nullable(snapshot: Snapshot, schema: StructType) -> StructType:
    """The schema, in which columns with generated or default values are nullable, so data may lack them."""
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
    """The update of a table, with these clustering columns.

    Raises:
        SchemaError: the table cannot be clustered by these columns.
    """
    chosen = ClusteringColumns.choose(change.schema, columns, partition_columns=change.partition_columns)
    require_statistics(chosen, change.schema, change.configuration)
    return replace(change, actions=(*change.actions, chosen.action()), clustered_by=chosen.columns)


def reclustered(snapshot: Snapshot, change: MetadataUpdate) -> MetadataUpdate:
    """The update of a table whose schema is replaced. It stays clustered by columns with the same names.

    Raises:
        SchemaError: the new schema lacks a clustering column, or the table becomes partitioned.
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
            fix="Keep these columns unchanged, or choose others first with DeltaTable.alter.cluster_by.",
        ) from error
    if chosen.columns == before.columns:
        return change
    action = replace(chosen, other=before.other).action()
    return replace(change, actions=(*change.actions, action), clustered_by=chosen.columns)


def _check_generated_values(columns: TableColumns) -> None:
    """Check defaults, identity columns and generated columns of a new schema."""
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
    partition_by = canonical_partition_columns(snapshot.schema, definition.partition_by)
    if partition_by == tuple(snapshot.partition_columns):
        return
    raise SchemaMismatchError(
        f"The table is partitioned by {_listed(snapshot.partition_columns)}, "
        f"not by {_listed(definition.partition_by)}.",
        cause="A write does not change the partitioning of an existing table.",
        fix="Omit partition_by, or overwrite the whole table with schema_mode='overwrite'.",
    )


def _check_clustering(snapshot: Snapshot, definition: TableDefinition) -> None:
    if definition.cluster_by is None:
        return
    current = clustering_of(snapshot)
    before = () if current is None else current.columns
    if ClusteringColumns.choose(snapshot.schema, definition.cluster_by).columns == before:
        return
    current_names = [] if current is None else current.names(snapshot.schema)
    given_names = [
        column if isinstance(column, str) else display_path(column) for column in definition.cluster_by
    ]
    raise SchemaMismatchError(
        f"The table is clustered by {_listed(current_names)}, not by {_listed(given_names)}.",
        cause="A write does not change the clustering columns of an existing table.",
        fix="Omit cluster_by, or change the columns with DeltaTable.alter.cluster_by.",
    )


def _check_configuration(snapshot: Snapshot, definition: TableDefinition) -> None:
    if not definition.configuration:
        return
    current = snapshot.metadata.configuration
    request = ProtocolRequest.of(definition.configuration)
    differing = sorted(k for k, v in request.properties.items() if current.get(k) != v)
    if not request.is_satisfied_by(snapshot.protocol):
        differing += sorted(set(definition.configuration) - set(request.properties))
    if differing:
        raise ConfigurationError(
            f"The table exists, and its values differ for {', '.join(differing)}.",
            cause="The argument configuration applies only to a table that the write creates.",
            fix="Omit configuration, or set the properties with DeltaTable.alter.set_properties.",
        )


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})" if names else "nothing"
