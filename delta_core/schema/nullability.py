"""Nulls in columns that must not have them, at any depth of structs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.schema.types import StructField, StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class NullViolation:
    """Nulls found in one non-nullable column.

    Attributes:
        column: dotted path of the column.
        num_rows: rows with a null there.
        first_row: index of the first such row.
    """

    column: str
    num_rows: int
    first_row: int


def find_null_violations(schema: StructType, data: pa.Table | pa.RecordBatch) -> list[NullViolation]:
    """Every non-nullable column of `schema` that holds nulls in `data`.

    A non-nullable field of a struct only counts where the struct itself is not null. Columns are found
    by exact name; columns that `data` lacks are not looked at.
    """
    found: list[NullViolation] = []
    present = set(data.schema.names)
    for field in schema:
        if field.name in present and _may_violate(field):
            found.extend(_check(field, data.column(field.name), field.name, None))
    return found


def _may_violate(field: StructField) -> bool:
    if not field.nullable:
        return True
    return isinstance(field.data_type, StructType) and any(_may_violate(child) for child in field.data_type)


def _check(
    field: StructField, column: pa.Array | pa.ChunkedArray, path: str, parent_is_null: pa.Array | None
) -> Iterator[NullViolation]:
    if not field.nullable and (column.null_count or column.type == pa.null()):
        nulls = pc.is_null(column)
        if parent_is_null is not None:
            nulls = pc.and_not(nulls, parent_is_null)
        count = pc.sum(nulls).as_py() or 0
        if count:
            yield NullViolation(column=path, num_rows=count, first_row=pc.index(nulls, True).as_py())
    if isinstance(field.data_type, StructType) and pa.types.is_struct(column.type):
        own_nulls = pc.is_null(column)
        names = {child.name for child in column.type.fields}
        for child in field.data_type:
            if child.name in names and _may_violate(child):
                yield from _check(
                    child, pc.struct_field(column, [child.name]), f"{path}.{child.name}", own_nulls
                )
