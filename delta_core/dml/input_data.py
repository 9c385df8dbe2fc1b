"""Whatever the caller hands over as data, as a stream of checked record batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from delta_core.data.row_pipeline import RowPipeline
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.schema.types import StructType

ArrowData: TypeAlias = Any
"""A table, a batch, a reader, or any object with the Arrow C data or stream interface."""

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"


def as_rows(data: ArrowData) -> Rows:
    """The data as a table, or as a reader when it is a stream. Reads nothing of a stream.

    Raises:
        ConfigurationError: the object has no Arrow interface.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    raise ConfigurationError(
        f"Data of type {type(data).__name__} cannot be written.",
        cause="It has no Arrow C data or stream interface.",
        fix="Pass a pyarrow Table, RecordBatch or RecordBatchReader, or a data frame that exports Arrow.",
    )


def checked_rows(
    rows: Rows,
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
    predicate: Expression | None,
) -> Rows:
    """The rows conformed to the schema, each checked against constraints and the predicate.

    A table is checked at once; a reader batch by batch as it is consumed, in bounded memory.

    Raises:
        SchemaMismatchError: a value cannot be converted without loss.
        ConstraintViolationError: a row breaks a constraint or the predicate.
    """
    plan = WritePlan.plain(schema, partition_columns=partition_columns, configuration=configuration)
    return RowPipeline(plan, now_us=0, predicate=predicate).stream(rows)
