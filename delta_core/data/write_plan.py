"""What a table asks of the rows that are written to it: decided once, from its protocol and metadata.

Pure, and a value that travels as JSON: whoever writes rows of the table, on whatever engine, does what the
plan says. Which columns have defaults, identity values or generation expressions counts only where the
protocol has the feature (PROTOCOL.md, "Default Columns", "Identity Columns", "Generated Columns").
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
from delta_core.schema.variant_parts import has_variants
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
    """What the rows of a write go through.

    Attributes:
        schema: the table's schema.
        partition_columns: names as in the schema.
        configuration: the table's properties; constraints are among them.
        features: the writer features of its protocol.
        mapping: what columns are called in files, partition values and statistics.
        materialise_partition_columns: whether files hold the partition columns too.
        row_tracking: the hidden columns that copied rows bring along; None where rows have no stable ids.
        defaults, identity, generated: the columns that get values where callers give none.
        clustered_by: paths of physical names by which the table is clustered: they have statistics in any
            case (PROTOCOL.md, "Writer Requirements for Clustered Table").
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
        """The plan of a table.

        Args:
            protocol, metadata: the table's.
            clustered_by: what its clustering domain says, for who takes statistics.

        Raises:
            InvalidTableError: the metadata contradicts itself, such as an identity column of strings.
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
        """The plan of a table without any feature that touches rows; constraints of `configuration` hold."""
        return cls(
            schema=schema, partition_columns=tuple(partition_columns), configuration=configuration or {}
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> WritePlan:
        """What `to_json` wrote. Raises as `of`."""
        return _derived(
            schema_from_json(document["schema"]),
            document["partition_columns"],
            document["configuration"],
            document["features"],
            clustered_by=[tuple(path) for path in document.get("clustered_by", ())],
        )

    def to_json(self) -> dict[str, Any]:
        """The facts that the plan follows from, as a JSON object."""
        return {
            "schema": schema_to_json(self.schema),
            "partition_columns": list(self.partition_columns),
            "configuration": dict(self.configuration),
            "features": sorted(self.features),
            "clustered_by": [list(path) for path in self.clustered_by],
        }

    @property
    def properties(self) -> TableProperties:
        """The table's properties by typed attribute."""
        return TableProperties.of(self.configuration)

    @property
    def filled_columns(self) -> frozenset[str]:
        """The columns that may be missing from a caller's rows though they must not be null."""
        filled = (self.defaults, self.identity, self.generated)
        return frozenset(item.name for group in filled for item in group)

    @property
    def is_plain(self) -> bool:
        """Whether files depend on the schema, the partition columns and the constraints alone."""
        filled = self.defaults or self.identity or self.generated
        mapped = self.mapping.mode is not ColumnMappingMode.NONE
        return not (filled or mapped or self.materialise_partition_columns)

    @property
    def has_variants(self) -> bool:
        """Whether there is a variant anywhere in the schema."""
        return has_variants(self.schema)

    @property
    def steps(self) -> tuple[str, ...]:
        """What rows go through, in order, by the names of the modules in `data/steps`."""
        asked = {
            "align": True,
            "defaults": bool(self.defaults),
            "identity": bool(self.identity),
            "generated": bool(self.generated),
            "constraints": True,
            "physical": True,
        }
        return tuple(name for name, wanted in asked.items() if wanted)


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
        materialise_partition_columns=_materialises(configuration, listed),
        row_tracking=_row_tracking(configuration, listed),
        defaults=_read(column_defaults, schema) if "allowColumnDefaults" in listed else (),
        identity=_read(_identity, schema) if "identityColumns" in listed else (),
        generated=_read(generation_expressions, schema) if "generatedColumns" in listed else (),
        clustered_by=tuple(clustered_by) if "clustering" in listed else (),
    )


def _materialises(configuration: Mapping[str, str], features: frozenset[str]) -> bool:
    """PROTOCOL.md, "Writer Requirements for IcebergCompatV1"; the feature of that name asks for it alone.

    A table may also just prefer it, by a property that binds no writer.
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
    """What a parser finds in the metadata of columns; a table whose metadata is wrong is not written."""
    try:
        return parse(schema)
    except SchemaError as error:
        raise InvalidTableError(
            f"{error.problem}: the table cannot be written",
            cause=error.cause,
            fix="Restore a version of the table whose schema is valid",
        ) from error
