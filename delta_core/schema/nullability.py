"""Nulls in non-nullable fields, elements and values, at any depth of structs, arrays and maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.schema.arrow import is_list_like
from delta_core.schema.conversion import null_mask
from delta_core.schema.types import ArrayType, DataType, MapType, StructType
from delta_core.schema.variant_structs import VARIANT_STRUCT

Rows: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True, slots=True, kw_only=True)
class NullViolation:
    """The nulls of one non-nullable field, element or value.

    Attributes:
        column: dotted path of the column, with `element`, `key` and `value` for arrays and maps.
        num_rows: number of rows with such a null.
        first_row: index of the first such row.
    """

    column: str
    num_rows: int
    first_row: int


def find_null_violations(schema: StructType, data: pa.Table | pa.RecordBatch) -> list[NullViolation]:
    """The nulls in `data` where `schema` does not allow them.

    A field counts as null where its struct is null, as in delta-spark, which would neither update nor compact
    a file with such a row. Elements of arrays and maps are only checked where the array or map is not null;
    the same applies to the fields of structs in them. Columns are found by exact name; columns that `data`
    lacks are not checked.
    """
    violations: list[NullViolation] = []
    present = set(data.schema.names)
    for field in schema:
        if field.name in present and _may_violate(field.data_type, nullable=field.nullable):
            column = data.column(field.name)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            violations += _in_column(field.data_type, field.nullable, chunks, field.name)
    return violations


def has_required_fields(data_type: pa.DataType) -> bool:
    """Whether the type contains a struct with a non-nullable field, at any level."""
    if pa.types.is_struct(data_type):
        return any(not f.nullable or has_required_fields(f.type) for f in data_type.fields)
    if pa.types.is_map(data_type):
        return has_required_fields(data_type.key_type) or has_required_fields(data_type.item_type)
    return is_list_like(data_type) and has_required_fields(data_type.value_type)


def without_hidden_nulls(array: pa.Array) -> pa.Array:
    """The array without null marks in non-nullable fields of structs. Values are not copied.

    Arrow may or may not mark such a field as null, and its Parquet writer refuses the mark. Values within a
    null struct are never written, so the mark can be removed.

    Args:
        array: its non-nullable fields are null only within a null (`find_null_violations` finds none).
    """
    kind = array.type
    if pa.types.is_struct(kind):
        children = [
            _nested(array.field(index)) if field.nullable else _required(array.field(index))
            for index, field in enumerate(kind.fields)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind.fields), mask=null_mask(array))
    return _nested(array)


def _in_column(data_type: DataType, nullable: bool, chunks: list[pa.Array], name: str) -> list[NullViolation]:
    counts: dict[str, int] = {}
    firsts: dict[str, int] = {}
    start = 0
    for chunk in chunks:
        for path, rows in _nulls(data_type, chunk, name, nullable=nullable):
            counts[path] = counts.get(path, 0) + len(rows)
            firsts.setdefault(path, start + int(rows[0]))
        start += len(chunk)
    return [
        NullViolation(column=path, num_rows=count, first_row=firsts[path]) for path, count in counts.items()
    ]


def _may_violate(data_type: DataType, *, nullable: bool) -> bool:
    if not nullable:
        return True
    match data_type:
        case StructType():
            return any(_may_violate(child.data_type, nullable=child.nullable) for child in data_type)
        case ArrayType():
            return _may_violate(data_type.element_type, nullable=data_type.contains_null)
        case MapType():
            values = _may_violate(data_type.value_type, nullable=data_type.value_contains_null)
            return values or _may_violate(data_type.key_type, nullable=True)
    return False


def _nulls(
    data_type: DataType,
    array: pa.Array,
    path: str,
    *,
    nullable: bool,
    hidden: pa.Array | None = None,
    rows: Rows | None = None,
) -> Iterator[tuple[str, Rows]]:
    """Each path with nulls, and the rows that have them, ascending.

    Args:
        data_type: the type of the values.
        array: the values.
        path: the path of the values.
        nullable: whether the values may be null.
        hidden: a mask of values within a null, which are not checked.
        rows: the row that each value belongs to; None where there is one value per row.
    """
    if not nullable and (array.null_count or array.type == pa.null()):
        nulls = pc.is_null(array)
        if hidden is not None:
            nulls = pc.and_not(nulls, hidden)
        at = np.flatnonzero(nulls.to_numpy(zero_copy_only=False))
        if len(at):
            yield path, at if rows is None else np.unique(rows[at])
    match data_type:
        case StructType() if pa.types.is_struct(array.type):
            own = None
            # The fields of a variant's struct form one value; they are not columns that could be null.
            if rows is not None or data_type is VARIANT_STRUCT:
                own = pc.is_null(array) if hidden is None else pc.or_(pc.is_null(array), hidden)
            names = {child.name for child in array.type.fields}
            for child in data_type:
                if child.name in names and _may_violate(child.data_type, nullable=child.nullable):
                    values = pc.struct_field(array, [child.name])
                    yield from _nulls(
                        child.data_type,
                        values,
                        f"{path}.{child.name}",
                        nullable=child.nullable,
                        hidden=own,
                        rows=rows,
                    )
        case ArrayType() if is_list_like(array.type):
            if not _may_violate(data_type.element_type, nullable=data_type.contains_null):
                return
            if not hasattr(array, "offsets"):
                array = array.cast(pa.list_(array.type.value_type))
            inner = _Inner.of(array, hidden, rows)
            yield from _nulls(
                data_type.element_type,
                inner.part(array.values),
                f"{path}.element",
                nullable=data_type.contains_null,
                hidden=inner.hidden,
                rows=inner.rows,
            )
        case MapType() if pa.types.is_map(array.type):
            inner = _Inner.of(array, hidden, rows)
            parts = (
                ("key", data_type.key_type, True, array.keys),
                ("value", data_type.value_type, data_type.value_contains_null, array.items),
            )
            for name, inner_type, may_be_null, values in parts:
                if _may_violate(inner_type, nullable=may_be_null):
                    yield from _nulls(
                        inner_type,
                        inner.part(values),
                        f"{path}.{name}",
                        nullable=may_be_null,
                        hidden=inner.hidden,
                        rows=inner.rows,
                    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Inner:
    """The elements of the arrays or maps in an Arrow array.

    Attributes:
        start, length: their range among the array's child values, which ignore the slice of the array.
        rows: the row that each value belongs to.
        hidden: a mask of values within a null.
    """

    start: int
    length: int
    rows: Rows
    hidden: pa.Array

    @classmethod
    def of(cls, array: pa.Array, hidden: pa.Array | None, rows: Rows | None) -> _Inner:
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        parents = np.repeat(np.arange(len(array), dtype=np.int64), np.diff(offsets))
        absent = pc.is_null(array).to_numpy(zero_copy_only=False)
        if hidden is not None:
            absent = absent | hidden.to_numpy(zero_copy_only=False)
        start = int(offsets[0]) if len(offsets) else 0
        return cls(
            start=start,
            length=len(parents),
            rows=parents if rows is None else rows[parents],
            hidden=pa.array(absent[parents]),
        )

    def part(self, values: pa.Array) -> pa.Array:
        """The part of the child values that belongs to the array."""
        return values.slice(self.start, self.length)


def _nested(array: pa.Array) -> pa.Array:
    kind = array.type
    if not has_required_fields(kind):
        return array
    if pa.types.is_struct(kind):
        return without_hidden_nulls(array)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [_nested(array.keys), _nested(array.items)], fields=[kind.key_field, kind.item_field]
        )
    else:
        entries = _nested(array.values)
    # `keys`, `items` and `values` ignore the array's offset, as the buffers do.
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )


def _required(array: pa.Array) -> pa.Array:
    array = _nested(array)
    if not array.null_count:
        return array
    kind = array.type
    if pa.types.is_struct(kind):
        children = [array.field(i) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind.fields))
    buffers = array.buffers()
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[kind.key_field, kind.item_field]
        )
        return pa.Array.from_buffers(kind, len(array), [None, buffers[1]], 0, array.offset, [entries])
    if is_list_like(kind):
        return pa.Array.from_buffers(kind, len(array), [None, buffers[1]], 0, array.offset, [array.values])
    return pa.Array.from_buffers(kind, len(array), [None, *buffers[1:]], 0, array.offset)
