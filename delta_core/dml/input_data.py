"""Whatever the caller hands over as data, as a table or a stream of record batches."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

from delta_core.errors import ConfigurationError

ArrowData: TypeAlias = Any
"""A table, a batch, a reader, or any object with the Arrow C data or stream interface."""

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"


def as_rows(data: ArrowData) -> Rows:
    """The data as a table, or as a reader when it is a stream. Reads nothing of a stream.

    Raises:
        ConfigurationError: the object has no Arrow interface, or is no rows: a column, or a type that
            pyarrow does not know.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    except (pa.ArrowException, TypeError) as error:
        raise ConfigurationError(
            f"Data of type {type(data).__name__} cannot be written.",
            cause=str(error),
            fix="Pass whole rows, a table rather than a column, of types that pyarrow has.",
        ) from error
    raise ConfigurationError(
        f"Data of type {type(data).__name__} cannot be written.",
        cause="It has no Arrow C data or stream interface.",
        fix="Pass a pyarrow Table, RecordBatch or RecordBatchReader, or a data frame that exports Arrow. "
        "Of batches, RecordBatchReader.from_batches(schema, batches) makes a reader, and so does "
        "scanner().to_reader() of a dataset.",
    )
