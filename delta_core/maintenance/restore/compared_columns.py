"""The columns that rows of two schemas are compared over, and how each side's rows take that shape."""

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
    """One compared column: its type, and its name on each side, None where that side lacks it."""

    arrow_type: pa.DataType
    names: tuple[str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedColumns:
    """The union of two schemas' columns.

    Attributes:
        only_now, only_then: columns of one side alone.
        apart: columns whose types cannot be compared; each is a column of either side alone.
    """

    columns: tuple[_Column, ...]
    only_now: tuple[str, ...]
    only_then: tuple[str, ...]
    apart: tuple[str, ...]

    @classmethod
    def of(cls, now: StructType, then: StructType) -> ComparedColumns:
        """The columns of both schemas, matched by name without case."""
        columns: list[_Column] = []
        apart: list[str] = []
        for field in now:
            other = then.find(field.name)
            if other is None:
                columns.append(_Column(arrow_type=_type_of(field), names=(field.name, None)))
                continue
            common = _common(field, other)
            if common is None:
                apart.append(field.name)
                columns.append(_Column(arrow_type=_type_of(field), names=(field.name, None)))
                columns.append(_Column(arrow_type=_type_of(other), names=(None, other.name)))
            else:
                columns.append(_Column(arrow_type=_type_of(common), names=(field.name, other.name)))
        missing = [field for field in then if now.find(field.name) is None]
        columns.extend(_Column(arrow_type=_type_of(field), names=(None, field.name)) for field in missing)
        return cls(
            columns=tuple(columns),
            only_now=tuple(name for name in now.names if then.find(name) is None),
            only_then=tuple(field.name for field in missing),
            apart=tuple(apart),
        )

    def aligned(self, side: int, batch: pa.RecordBatch) -> list[pa.Array]:
        """The batch's columns in the common order and types; `side` is 0 for now and 1 for then."""
        return list(self._aligned(side, batch))

    def _aligned(self, side: int, batch: pa.RecordBatch) -> Iterator[pa.Array]:
        for column in self.columns:
            name = column.names[side]
            if name is None:
                yield pa.nulls(batch.num_rows, column.arrow_type)
            else:
                yield convert_array(batch.column(name), column.arrow_type)


def _common(now: StructField, then: StructField) -> StructField | None:
    """The field that holds the values of both, if a lossless one exists."""
    for first, second in ((now, then), (then, now)):
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
    """The type without its promises about nulls, which a side without the column could not keep."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _nullable(child.type)) for child in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _nullable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    return kind
