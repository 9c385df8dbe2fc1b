"""A caller's columns as the table's: order, names, types; which of them were not given.

Variants come as the struct of their two byte strings, whatever the order and width of these; that the bytes
are variants is checked here, since no later step looks into them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.data.row_batch import Array, Columns, RowBatch
from delta_core.data.write_plan import WritePlan, has_variant
from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.schema.enforcement import conform
from delta_core.schema.types import ArrayType, DataType, MapType, StructType
from delta_core.schema.variant_parts import schema_in_parts
from delta_core.variants.validation import first_malformed


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
        for part in _variants_in(columns.column(field.name), field.data_type):
            found = first_malformed(part)
            if found is not None:
                number, problem = found
                raise ConstraintViolationError(
                    f"Column {field.name} holds bytes that are not a variant",
                    cause=f"For example in value {number} of {len(part)}: {problem}",
                    fix="Encode the values as variants (the Variant binary encoding of Parquet), or leave "
                    "them out",
                )


def _variants_in(column: Array, data_type: DataType) -> Iterator[pa.Array]:
    """The variants in a column, wherever they are in it; those below a null are left out."""
    if not has_variant(data_type):
        return
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            for chunk in column.chunks:
                yield from _variants_in(chunk, data_type)
            return
    match data_type:
        case StructType():
            for index, field in enumerate(data_type):
                yield from _variants_in(pc.struct_field(column, [index]), field.data_type)
        case ArrayType():
            yield from _variants_in(column.flatten(), data_type.element_type)
        case MapType():
            # `items` of a sliced map are not sliced; its offsets say which part is meant.
            first, last = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
            yield from _variants_in(column.items.slice(first, last - first), data_type.value_type)
        case _:
            yield column
