"""What a table asks of the rows that are written to it: decided once, from its protocol and metadata.

Pure, and a value that travels as JSON: whoever writes rows of the table, on whatever engine, does what the
plan says. Which columns have defaults, identity values or generation expressions counts only where the
protocol has the feature (PROTOCOL.md, "Default Columns", "Identity Columns", "Generated Columns").
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delta_core.actions import Metadata, Protocol
from delta_core.errors import InvalidTableError
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping, ColumnMappingMode
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import LONG, VARIANT, ArrayType, DataType, MapType, StructField, StructType
from delta_core.table_features.feature import writer_features
from delta_core.table_features.row_tracking import RowTracking
from delta_core.table_features.table_properties import TableProperties, parse_bool

DEFAULT_KEY = "CURRENT_DEFAULT"
GENERATION_KEY = "delta.generationExpression"
IDENTITY_PREFIX = "delta.identity."
_MATERIALISING_FEATURE = "materializePartitionColumns"
_ICEBERG = {
    "icebergCompatV1": "delta.enableIcebergCompatV1",
    "icebergCompatV2": "delta.enableIcebergCompatV2",
}
_HIGHEST_LONG = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultValue:
    """A column's default: SQL text without columns, evaluated once for a statement."""

    column: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedColumn:
    """A column whose value is that of an expression over others, as SQL text."""

    column: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityColumn:
    """A column of unique numbers, `start + k * step`.

    Attributes:
        high_water_mark: the last value generated, None before the first.
        allow_explicit_insert: whether callers may give values of their own.
    """

    column: str
    start: int
    step: int
    high_water_mark: int | None
    allow_explicit_insert: bool


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
    """

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str]
    features: frozenset[str] = frozenset()
    mapping: ColumnMapping = UNMAPPED
    materialise_partition_columns: bool = False
    row_tracking: RowTracking | None = None
    defaults: tuple[DefaultValue, ...] = ()
    identity: tuple[IdentityColumn, ...] = ()
    generated: tuple[GeneratedColumn, ...] = ()

    @classmethod
    def of(cls, protocol: Protocol, metadata: Metadata) -> WritePlan:
        """The plan of a table.

        Raises:
            InvalidTableError: the metadata contradicts itself, such as an identity column of strings.
            SchemaError: the schema cannot be read.
        """
        return _derived(
            schema_from_json(metadata.schema_string),
            metadata.partition_columns,
            metadata.configuration,
            writer_features(protocol),
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
        )

    def to_json(self) -> dict[str, Any]:
        """The facts that the plan follows from, as a JSON object."""
        return {
            "schema": schema_to_json(self.schema),
            "partition_columns": list(self.partition_columns),
            "configuration": dict(self.configuration),
            "features": sorted(self.features),
        }

    @property
    def properties(self) -> TableProperties:
        """The table's properties by typed attribute."""
        return TableProperties.of(self.configuration)

    @property
    def filled_columns(self) -> frozenset[str]:
        """The columns that may be missing from a caller's rows though they must not be null."""
        found: tuple[DefaultValue | IdentityColumn | GeneratedColumn, ...]
        found = (*self.defaults, *self.identity, *self.generated)
        return frozenset(item.column for item in found)

    @property
    def is_plain(self) -> bool:
        """Whether files depend on the schema, the partition columns and the constraints alone."""
        filled = self.defaults or self.identity or self.generated
        mapped = self.mapping.mode is not ColumnMappingMode.NONE
        return not (filled or mapped or self.materialise_partition_columns)

    @property
    def has_variants(self) -> bool:
        """Whether there is a variant anywhere in the schema."""
        return has_variant(self.schema)

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
        defaults=_defaults(schema) if "allowColumnDefaults" in listed else (),
        identity=_identity(schema) if "identityColumns" in listed else (),
        generated=_generated(schema) if "generatedColumns" in listed else (),
    )


def _materialises(configuration: Mapping[str, str], features: frozenset[str]) -> bool:
    """PROTOCOL.md, "Writer Requirements for IcebergCompatV1"; the feature of that name asks for it alone."""
    return _MATERIALISING_FEATURE in features or any(
        feature in features and _is_on(configuration, key) for feature, key in _ICEBERG.items()
    )


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


def _defaults(schema: StructType) -> tuple[DefaultValue, ...]:
    return tuple(
        DefaultValue(column=field.name, text=_text(field, DEFAULT_KEY))
        for field in schema
        if DEFAULT_KEY in field.metadata
    )


def _generated(schema: StructType) -> tuple[GeneratedColumn, ...]:
    found = []
    for field in schema:
        if GENERATION_KEY not in field.metadata:
            continue
        if field.data_type == VARIANT:
            raise _broken(field, GENERATION_KEY, "No expression gives a variant")
        found.append(GeneratedColumn(column=field.name, text=_text(field, GENERATION_KEY)))
    return tuple(found)


def _identity(schema: StructType) -> tuple[IdentityColumn, ...]:
    found = []
    for field in schema:
        values = {
            key.removeprefix(IDENTITY_PREFIX): value
            for key, value in field.metadata.items()
            if key.startswith(IDENTITY_PREFIX)
        }
        if not {"start", "step"} & values.keys():
            continue
        if field.data_type != LONG:
            raise _broken(field, IDENTITY_PREFIX, f"The column has type {field.data_type}, not long")
        start, step = (_long(field, key, values.get(key)) for key in ("start", "step"))
        if step == 0:
            raise _broken(field, f"{IDENTITY_PREFIX}step", "The step is 0")
        mark = values.get("highWaterMark")
        explicit = values.get("allowExplicitInsert", False)
        found.append(
            IdentityColumn(
                column=field.name,
                start=start,
                step=step,
                high_water_mark=None if mark is None else _long(field, "highWaterMark", mark),
                allow_explicit_insert=explicit is True or str(explicit).lower() == "true",
            )
        )
    return tuple(found)


def _text(field: StructField, key: str) -> str:
    value = field.metadata[key]
    if not isinstance(value, str):
        raise _broken(field, key, f"It is {value!r}, not a text")
    return value


def _long(field: StructField, key: str, value: object) -> int:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = int(value)
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not -_HIGHEST_LONG - 1 <= value <= _HIGHEST_LONG
    ):
        raise _broken(field, IDENTITY_PREFIX + key, f"It is {value!r}, not a whole number of 64 bits")
    return value


def has_variant(data_type: DataType) -> bool:
    """Whether a type is a variant or has one in it."""
    match data_type:
        case StructType():
            return any(has_variant(field.data_type) for field in data_type)
        case ArrayType():
            return has_variant(data_type.element_type)
        case MapType():
            return has_variant(data_type.key_type) or has_variant(data_type.value_type)
    return data_type == VARIANT


def _broken(field: StructField, key: str, cause: str) -> InvalidTableError:
    return InvalidTableError(
        f"The column {field.name} cannot be written: its metadata {key} is not valid",
        cause=cause,
        fix="Restore a version of the table whose schema is valid",
    )
