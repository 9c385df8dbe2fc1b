"""A caller's columns as the table's: order, names, types; which of them were not given.

Variants come as the struct of their two byte strings, whatever the order and width of these; that the bytes
are variants is checked here, since no later step looks into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from delta_core.schema.variant_parts import has_variants, schema_in_parts
from delta_core.variants.validation import first_malformed

RowOf: TypeAlias = Callable[[int], int]
"""The row of a value."""


class AlignStep:
    """The first step.

    Raises (from `apply`):
        SchemaMismatchError: the data does not fit the schema, or holds values for an identity column that
            takes none from callers.
        ConstraintViolationError: nulls where none may be, or bytes that are no variant.
    """

    columns_needed: frozenset[str] = frozenset()

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._schema = schema_in_parts(plan.schema) if plan.has_variants else plan.schema

    def apply(self, batch: RowBatch) -> RowBatch:
        """Rows with the caller's columns as rows with the table's."""
        given = {name.casefold() for name in batch.columns.schema.names}
        absent = frozenset(name for name in self._plan.schema.names if name.casefold() not in given)
        self._refuse_identity_values(absent)
        # Null for now; a step that fills the column comes later, and only then nulls are counted.
        filled = absent & self._plan.filled_columns
        aligned = conform(
            _nullable(self._schema, filled) if filled else self._schema,
            batch.columns,
            partition_columns=self._plan.partition_columns,
        )
        if self._plan.has_variants:
            _check_variants(self._plan.schema, aligned)
        return replace(batch, columns=aligned, absent=absent)

    def _refuse_identity_values(self, absent: frozenset[str]) -> None:
        for item in self._plan.identity:
            if item.name not in absent and not item.allow_explicit_insert:
                raise SchemaMismatchError(
                    f"Values for the identity column {item.name} cannot be given",
                    cause="The table generates them always (delta.identity.allowExplicitInsert is false)",
                    fix="Leave the column out of the data",
                )


def _nullable(schema: StructType, names: frozenset[str]) -> StructType:
    return StructType(tuple(replace(f, nullable=True) if f.name in names else f for f in schema))


def _check_variants(schema: StructType, columns: Columns) -> None:
    for field in schema:
        for part, row_of in _variants_in(columns.column(field.name), field.data_type, 0):
            found = first_malformed(part)
            if found is not None:
                number, problem = found
                raise ConstraintViolationError(
                    f"Column {field.name} holds bytes that are not a variant",
                    cause=f"For example in row {row_of(number)} of {columns.num_rows}: {problem}",
                    fix="Encode the values as variants (the Variant binary encoding of Parquet), or leave "
                    "them out",
                )


def _variants_in(column: Array, data_type: DataType, first_row: int) -> Iterator[tuple[pa.Array, RowOf]]:
    """The variants in a column, wherever in it, and whose they are; those below a null are left out."""
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
            # As in `flatten`, nulls have no elements.
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
            yield from _of_elements(column.flatten(), lengths, data_type.element_type, first_row)
        case MapType():
            # `items` of a sliced map are not sliced; its offsets say which part is meant.
            offsets = column.offsets.to_numpy(zero_copy_only=False)[: len(column) + 1]
            items = column.items.slice(offsets[0], offsets[-1] - offsets[0])
            yield from _of_elements(items, np.diff(offsets), data_type.value_type, first_row)
        case _:
            yield column, lambda number: first_row + number


def _of_elements(
    elements: pa.Array, lengths: np.ndarray, data_type: DataType, first_row: int
) -> Iterator[tuple[pa.Array, RowOf]]:
    for part, element_of in _variants_in(elements, data_type, 0):

        def row_of(number: int, element_of: RowOf = element_of) -> int:
            owner = np.searchsorted(np.cumsum(lengths), element_of(number), side="right")
            return first_row + int(owner)

        yield part, row_of
