"""The interface of the steps."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from delta_core.data.row_batch import Columns, RowBatch
from delta_core.schema.arrow import field_to_arrow
from delta_core.schema.partition_values import empty_as_null
from delta_core.schema.types import StructField


class Step(Protocol):
    """One operation on rows with logical names.

    The operation is also available as data (SQL text, expressions, values), so that another engine can do
    the same in its own way.
    """

    def apply(self, batch: RowBatch) -> RowBatch:
        """The rows after this step."""
        ...


def with_column(
    columns: Columns, field: StructField, values: pa.Array | pa.ChunkedArray, *, is_partition: bool
) -> Columns:
    """The rows with new values for one column.

    The column is declared nullable; nulls are counted once, in the last step. A partition column cannot
    contain the empty string, so it becomes null there.
    """
    if is_partition:
        values = empty_as_null(values, field.data_type)
    if isinstance(columns, pa.RecordBatch) and isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    position = columns.schema.get_field_index(field.name)
    return columns.set_column(position, field_to_arrow(field).with_nullable(True), values)
