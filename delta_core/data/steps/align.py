"""Conversion of a caller's columns to the table's order, names and types.

Variants are structs of two byte strings, in any order and width. This step checks that the bytes are valid
variants, since no later step reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.data.row_batch import Array, Columns, RowBatch
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.schema.enforcement import conform
from delta_core.schema.types import ArrayType, DataType, MapType, StructType
from delta_core.schema.variant_structs import has_variants, with_variant_struct_fields
from delta_core.variants.validation import first_malformed

RowOf: TypeAlias = Callable[[int], int]
"""A function from the index of a value to the index of its row."""


class AlignStep:
    """The first step: aligns columns with the table's schema and records which columns the data lacks.

    Raises (from `apply`):
        SchemaMismatchError: the data does not fit the schema, or has values for an identity column that
            accepts none from callers.
        ConstraintViolationError: a required value is null, or the bytes of a variant are not valid.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._schema = with_variant_struct_fields(plan.schema) if plan.has_variants else plan.schema

    def apply(self, batch: RowBatch) -> RowBatch:
        """Convert rows with the caller's columns to rows with the table's columns."""
        given = {name.casefold() for name in batch.columns.schema.names}
        absent = frozenset(name for name in self._plan.schema.names if name.casefold() not in given)
        refuse_identity_values(self._plan, absent)
        # Null for now: a later step fills the column, and nulls are counted only after it.
        filled = absent & self._plan.filled_columns
        aligned = conform(
            _nullable(self._schema, filled) if filled else self._schema,
            batch.columns,
            partition_columns=self._plan.partition_columns,
        )
        if self._plan.has_variants:
            _check_variants(self._plan.schema, aligned)
        return replace(batch, columns=aligned, absent=absent)


def refuse_identity_values(plan: WritePlan, absent: Collection[str]) -> None:
    """Refuse values for identity columns that accept none.

    Args:
        plan: the write plan of the table.
        absent: the table's columns that the caller's rows do not have.

    Raises:
        SchemaMismatchError: such a column has values.
    """
    for item in plan.identity:
        if item.name not in absent and not item.allow_explicit_insert:
            raise SchemaMismatchError(
                f"Values for the identity column {item.name} are not allowed.",
                cause="The table always generates them (delta.identity.allowExplicitInsert is false).",
                fix="Remove the column from the data.",
            )


def _nullable(schema: StructType, names: frozenset[str]) -> StructType:
    return StructType(tuple(replace(f, nullable=True) if f.name in names else f for f in schema))


def _check_variants(schema: StructType, columns: Columns) -> None:
    for field in schema:
        for part, row_of in _variants_in(columns.column(field.name), field.data_type, 0):
            malformed = first_malformed(part)
            if malformed is not None:
                number, problem = malformed
                raise ConstraintViolationError(
                    f"Column {field.name} contains bytes that are not a variant.",
                    cause=f"For example in row {row_of(number)} of {columns.num_rows}: {problem}",
                    fix="Encode the values as variants (the Variant binary encoding of Parquet), or remove "
                    "them.",
                )


def _variants_in(column: Array, data_type: DataType, first_row: int) -> Iterator[tuple[pa.Array, RowOf]]:
    """The variants in a column at any depth, with the rows of their values. Skips values below a null."""
    if not has_variants(data_type):
        return
    if isinstance(column, pa.ChunkedArray):
        for chunk in column.chunks:
            yield from _variants_in(chunk, data_type, first_row)
            first_row += len(chunk)
        return
    match data_type:
        case StructType():
            for index, field in enumerate(data_type):
                yield from _variants_in(pc.struct_field(column, [index]), field.data_type, first_row)
        case ArrayType():
            # Nulls have no elements, as in `flatten`.
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
            yield from _variants_in_elements(column.flatten(), lengths, data_type.element_type, first_row)
        case MapType():
            # `items` of a sliced map are not sliced; its offsets give the relevant part.
            offsets = column.offsets.to_numpy(zero_copy_only=False)[: len(column) + 1]
            items = column.items.slice(offsets[0], offsets[-1] - offsets[0])
            yield from _variants_in_elements(items, np.diff(offsets), data_type.value_type, first_row)
        case _:
            yield column, lambda number: first_row + number


def _variants_in_elements(
    elements: pa.Array, lengths: np.ndarray, data_type: DataType, first_row: int
) -> Iterator[tuple[pa.Array, RowOf]]:
    for part, element_of in _variants_in(elements, data_type, 0):

        def row_of(number: int, element_of: RowOf = element_of) -> int:
            owner = np.searchsorted(np.cumsum(lengths), element_of(number), side="right")
            return first_row + int(owner)

        yield part, row_of
