"""The write plan of a table: the steps for rows, decided once from its protocol and metadata.

A plan is immutable and can be sent as JSON: every engine that writes rows of the table follows the plan.
Column defaults, identity columns and generation expressions apply only when the protocol has the feature
(PROTOCOL.md, "Default Columns", "Identity Columns", "Generated Columns").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from delta_core.actions import Metadata, Protocol
from delta_core.errors import InvalidTableError, SchemaError
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping, ColumnMappingMode
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import StructType
from delta_core.schema.variant_structs import has_variants
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.table_features.defaults import ColumnDefault, column_defaults
from delta_core.table_features.feature import writer_features
from delta_core.table_features.generation import GenerationExpression, generation_expressions
from delta_core.table_features.identity import IdentityColumn, identity_columns, validate_identity
from delta_core.table_features.row_tracking import RowTracking
from delta_core.table_features.table_properties import (
    WRITE_PARTITION_COLUMNS,
    TableProperties,
    parse_bool,
)

T = TypeVar("T")

_MATERIALISING_FEATURE = "materializePartitionColumns"
_ICEBERG = {
    "icebergCompatV1": "delta.enableIcebergCompatV1",
    "icebergCompatV2": "delta.enableIcebergCompatV2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """The steps and settings of a write.

    Attributes:
        schema: the table's schema.
        partition_columns: names as in the schema.
        configuration: the table's properties, including constraints.
        features: the writer features of its protocol.
        mapping: the names of columns in files, partition values and statistics.
        materialise_partition_columns: whether files also contain the partition columns.
        row_tracking: the hidden columns of copied rows; None without row tracking.
        defaults, identity, generated: the columns that get values when callers give none.
        clustered_by: physical paths of the clustering columns, which always have statistics (PROTOCOL.md,
            "Writer Requirements for Clustered Table").
    """

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str]
    features: frozenset[str] = frozenset()
    mapping: ColumnMapping = UNMAPPED
    materialise_partition_columns: bool = False
    row_tracking: RowTracking | None = None
    defaults: tuple[ColumnDefault, ...] = ()
    identity: tuple[IdentityColumn, ...] = ()
    generated: tuple[GenerationExpression, ...] = ()
    clustered_by: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(
        cls, protocol: Protocol, metadata: Metadata, *, clustered_by: Iterable[tuple[str, ...]] = ()
    ) -> WritePlan:
        """The plan for writes to a table, from the table's protocol and metadata.

        Args:
            protocol, metadata: the table's actions.
            clustered_by: physical paths in the clustering domain, for callers that collect statistics.

        Raises:
            InvalidTableError: the metadata contradicts itself, such as a string identity column.
            SchemaError: the schema cannot be read.
        """
        return _derived(
            schema_from_json(metadata.schema_string),
            metadata.partition_columns,
            metadata.configuration,
            writer_features(protocol),
            clustered_by=clustered_by,
        )

    @classmethod
    def plain(
        cls,
        schema: StructType,
        *,
        partition_columns: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
    ) -> WritePlan:
        """The plan for a table whose features do not affect rows. Constraints in `configuration` apply."""
        return cls(
            schema=schema, partition_columns=tuple(partition_columns), configuration=configuration or {}
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> WritePlan:
        """The plan from the output of `to_json`. Raises as `of`."""
        return _derived(
            schema_from_json(document["schema"]),
            document["partition_columns"],
            document["configuration"],
            document["features"],
            clustered_by=[tuple(path) for path in document.get("clustered_by", ())],
        )

    def to_json(self) -> dict[str, Any]:
        """The data from which the plan can be derived, as a JSON object."""
        return {
            "schema": schema_to_json(self.schema),
            "partition_columns": list(self.partition_columns),
            "configuration": dict(self.configuration),
            "features": sorted(self.features),
            "clustered_by": [list(path) for path in self.clustered_by],
        }

    @property
    def properties(self) -> TableProperties:
        """The table's properties as typed attributes."""
        return TableProperties.of(self.configuration)

    @property
    def filled_columns(self) -> frozenset[str]:
        """The NOT NULL columns that may be missing in a caller's rows, since a step fills them."""
        filled = (self.defaults, self.identity, self.generated)
        return frozenset(item.name for group in filled for item in group)

    @property
    def is_plain(self) -> bool:
        """Whether files depend only on the schema, the partition columns and the constraints."""
        filled = self.defaults or self.identity or self.generated
        mapped = self.mapping.mode is not ColumnMappingMode.NONE
        return not (filled or mapped or self.materialise_partition_columns)

    @property
    def has_variants(self) -> bool:
        """Whether the schema contains a variant at any depth."""
        return has_variants(self.schema)

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of rows, in order, by the names of the modules in `data/steps`."""
        is_needed = {
            "align": True,
            "defaults": bool(self.defaults),
            "identity": bool(self.identity),
            "generated": bool(self.generated),
            "constraints": True,
            "physical": True,
        }
        return tuple(name for name, needed in is_needed.items() if needed)


def write_plan_of(snapshot: Snapshot) -> WritePlan:
    """The write plan of a table. It includes statistics of the clustering columns.

    Raises:
        InvalidTableError: the table's requirements for rows contradict each other.
        SchemaError: the schema cannot be read.
    """
    clustering = clustering_of(snapshot)
    return WritePlan.of(
        snapshot.protocol, snapshot.metadata, clustered_by=() if clustering is None else clustering.columns
    )


def _derived(
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
    features: Iterable[str],
    *,
    clustered_by: Iterable[tuple[str, ...]] = (),
) -> WritePlan:
    listed = frozenset(features)
    return WritePlan(
        schema=schema,
        partition_columns=tuple(partition_columns),
        configuration=configuration,
        features=listed,
        mapping=ColumnMapping.of(configuration) if "columnMapping" in listed else UNMAPPED,
        materialise_partition_columns=_materialises_partitions(configuration, listed),
        row_tracking=_row_tracking(configuration, listed),
        defaults=_read(column_defaults, schema) if "allowColumnDefaults" in listed else (),
        identity=_read(_identity, schema) if "identityColumns" in listed else (),
        generated=_read(generation_expressions, schema) if "generatedColumns" in listed else (),
        clustered_by=tuple(clustered_by) if "clustering" in listed else (),
    )


def _materialises_partitions(configuration: Mapping[str, str], features: frozenset[str]) -> bool:
    """Whether files contain the partition columns.

    PROTOCOL.md, "Writer Requirements for IcebergCompatV1"; the feature materializePartitionColumns also
    requires it.

    A table may also request it by a property that does not bind writers.
    """
    if _MATERIALISING_FEATURE in features or _is_on(configuration, WRITE_PARTITION_COLUMNS.key):
        return True
    return any(feature in features and _is_on(configuration, key) for feature, key in _ICEBERG.items())


def _row_tracking(configuration: Mapping[str, str], features: frozenset[str]) -> RowTracking | None:
    if "rowTracking" not in features or not _is_on(configuration, "delta.enableRowTracking"):
        return None
    return RowTracking.of(
        Protocol(min_reader_version=3, min_writer_version=7, writer_features=features),
        Metadata(id="", schema_string="", configuration=configuration),
        operation="write rows",
    )


def _is_on(configuration: Mapping[str, str], key: str) -> bool:
    try:
        return parse_bool(configuration.get(key, "false"))
    except ValueError:
        return False


def _identity(schema: StructType) -> tuple[IdentityColumn, ...]:
    validate_identity(schema)
    return identity_columns(schema)


def _read(parse: Callable[[StructType], tuple[T, ...]], schema: StructType) -> tuple[T, ...]:
    """Parse the metadata of columns. A table with invalid metadata cannot be written."""
    try:
        return parse(schema)
    except SchemaError as error:
        raise InvalidTableError(
            f"The table cannot be written: {error.problem}",
            cause=error.cause,
            fix="Restore a version of the table whose schema is valid.",
        ) from error
