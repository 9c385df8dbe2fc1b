"""The columns over which rows of two schemas are compared, and the conversion of rows to these columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from delta_core.errors import SchemaEvolutionError
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.conversion import convert_array
from delta_core.schema.evolution import merge_schemas
from delta_core.schema.types import StructField, StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One compared column: its type, and its name in each version; None for a version without the column."""

    arrow_type: pa.DataType
    names: tuple[str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedColumns:
    """The union of two schemas' columns.

    Attributes:
        only_in_snapshot, only_in_target: columns that only one version has.
        incompatible: columns whose types cannot be compared. Each is compared as two columns, one for each
            version.
    """

    columns: tuple[_Column, ...]
    only_in_snapshot: tuple[str, ...]
    only_in_target: tuple[str, ...]
    incompatible: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: StructType, target: StructType) -> ComparedColumns:
        """The columns of both schemas, matched by case-insensitive name."""
        columns: list[_Column] = []
        incompatible: list[str] = []
        for field in snapshot:
            other = target.find(field.name)
            if other is None:
                columns.append(_Column(arrow_type=_type_of(field), names=(field.name, None)))
                continue
            common = _common(field, other)
            if common is None:
                incompatible.append(field.name)
                columns.append(_Column(arrow_type=_type_of(field), names=(field.name, None)))
                columns.append(_Column(arrow_type=_type_of(other), names=(None, other.name)))
            else:
                columns.append(_Column(arrow_type=_type_of(common), names=(field.name, other.name)))
        missing = [field for field in target if snapshot.find(field.name) is None]
        columns.extend(_Column(arrow_type=_type_of(field), names=(None, field.name)) for field in missing)
        return cls(
            columns=tuple(columns),
            only_in_snapshot=tuple(name for name in snapshot.names if target.find(name) is None),
            only_in_target=tuple(field.name for field in missing),
            incompatible=tuple(incompatible),
        )

    def aligned(self, side: int, batch: pa.RecordBatch) -> list[pa.Array]:
        """The batch with the compared columns; `side` is 0 for the snapshot and 1 for the target."""
        return list(self._aligned(side, batch))

    def _aligned(self, side: int, batch: pa.RecordBatch) -> Iterator[pa.Array]:
        for column in self.columns:
            name = column.names[side]
            if name is None:
                yield pa.nulls(batch.num_rows, column.arrow_type)
            else:
                yield convert_array(batch.column(name), column.arrow_type)


def _common(snapshot: StructField, target: StructField) -> StructField | None:
    """A field that holds the values of both fields without loss; None if none exists."""
    for first, second in ((snapshot, target), (target, snapshot)):
        try:
            (field,) = merge_schemas(
                StructType((_renamed(first),)), StructType((_renamed(second),)), widen_nullability=True
            )
        except SchemaEvolutionError:
            continue
        return field
    return None


def _renamed(field: StructField) -> StructField:
    return StructField(name="value", data_type=field.data_type)


def _type_of(field: StructField) -> pa.DataType:
    return _nullable(type_to_arrow(field.data_type))


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The type with all nested fields nullable, since a version without the column has nulls."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _nullable(child.type)) for child in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _nullable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    return kind
