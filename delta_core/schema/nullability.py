"""Nulls where there must be none, at any depth of structs, arrays and maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.schema.arrow import is_list_like
from delta_core.schema.types import ArrayType, DataType, MapType, StructType
from delta_core.schema.variant_parts import VARIANT_PARTS

Rows: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True, slots=True, kw_only=True)
class NullViolation:
    """Nulls found in one place that must not have them.

    Attributes:
        column: dotted path of the column, with `element`, `key` and `value` for what is in arrays and maps.
        num_rows: rows with a null there.
        first_row: index of the first such row.
    """

    column: str
    num_rows: int
    first_row: int


def find_null_violations(schema: StructType, data: pa.Table | pa.RecordBatch) -> list[NullViolation]:
    """Every place of `schema` that must not be null and is in `data`.

    A field is null where the struct that it is in is null, as in delta-spark, which would neither change nor
    compact a file with such a row. What is in an array or map only counts where that is not null, and so do
    the fields of structs there. Columns are found by exact name; columns that `data` lacks are not looked at.
    """
    found: list[NullViolation] = []
    present = set(data.schema.names)
    for field in schema:
        if field.name in present and _may_violate(field.data_type, nullable=field.nullable):
            column = data.column(field.name)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            found += _in_column(field.data_type, field.nullable, chunks, field.name)
    return found


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
    """Each place with nulls, and the rows that have them, ascending.

    Args:
        data_type: of the values.
        array: the values.
        path: of the place.
        nullable: whether the values may be null.
        hidden: which values are below a null, and do not count.
        rows: the row that each value belongs to; None where there is one for each row.
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
            # The parts of a variant are of a value, not columns that anybody could fill.
            if rows is not None or data_type is VARIANT_PARTS:
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
    """What is in the arrays or maps of an Arrow array.

    Attributes:
        start, length: where it lies among the array's own values, which know nothing of a slice.
        rows: the row that each value belongs to.
        hidden: which values are below a null.
    """

    start: int
    length: int
    rows: Rows
    hidden: pa.Array

    @classmethod
    def of(cls, array: pa.Array, hidden: pa.Array | None, rows: Rows | None) -> _Inner:
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        parents = np.repeat(np.arange(len(array), dtype=np.int64), np.diff(offsets))
        gone = pc.is_null(array).to_numpy(zero_copy_only=False)
        if hidden is not None:
            gone = gone | hidden.to_numpy(zero_copy_only=False)
        start = int(offsets[0]) if len(offsets) else 0
        return cls(
            start=start,
            length=len(parents),
            rows=parents if rows is None else rows[parents],
            hidden=pa.array(gone[parents]),
        )

    def part(self, values: pa.Array) -> pa.Array:
        """Those of the array's own values that belong to it."""
        return values.slice(self.start, self.length)
