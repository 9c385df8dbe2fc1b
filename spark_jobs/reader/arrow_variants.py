"""Variants in the Arrow batches that Python tasks return to Spark.

Spark takes a struct for a variant when its field `metadata` is marked, and finds the two fields by position.
"""

from __future__ import annotations

import pyarrow as pa

from delta_core.schema.arrow import is_list_like, is_marked
from delta_core.schema.conversion import convert_array

_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def with_spark_variants(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the variants of Spark in place of those of `delta_core`, at every level.

    Args:
        rows: the rows.
        schema: their schema, in which variants are marked.
    """
    fields = [_spark_field(field) for field in schema]
    if all(new.type == old.type for new, old in zip(fields, schema, strict=True)):
        return rows
    arrays = [convert_array(column, field.type) for column, field in zip(rows.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _spark_field(field: pa.Field) -> pa.Field:
    kind = field.type
    if is_marked(field):
        return field.with_type(_VARIANT)
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_spark_field(child) for child in kind.fields]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_spark_field(kind.key_field), _spark_field(kind.item_field)))
    if is_list_like(kind):
        return field.with_type(pa.list_(_spark_field(kind.value_field)))
    return field
