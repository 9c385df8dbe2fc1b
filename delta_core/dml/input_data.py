"""Converts the caller's data into an Arrow table or a stream of record batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from delta_core.errors import ConfigurationError, DeltaError, described
from delta_core.errors.definitions import unreadable_data

ArrowData: TypeAlias = Any
"""A table, a batch, a reader, any object with the Arrow C data or stream interface, or a list of such."""

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"


def as_rows(data: ArrowData) -> Rows:
    """The data as a table, or as a reader when it is a stream. Only streams in a list are read.

    Raises:
        ConfigurationError: the object has no Arrow interface, or does not return Arrow data with columns; a
            list is empty, or its parts have different columns.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, list | tuple):
        return _concatenated(data)
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    except Exception as error:
        # For example a data frame with strings and numbers in one column, an unnamed or duplicate column, a
        # type that pyarrow lacks, or an error of the frame's own code.
        raise ConfigurationError(
            f"Data of type {type(data).__name__} cannot be written.",
            cause=f"Arrow cannot convert it to a table: {described(error)}",
            fix="Pass a table or a data frame whose columns each have one type that pyarrow supports.",
        ) from error
    raise ConfigurationError(
        f"Data of type {type(data).__name__} cannot be written.",
        cause="It has no Arrow C data or stream interface.",
        fix="Pass a pyarrow Table, RecordBatch or RecordBatchReader, a list of them, or a data frame that "
        "exports Arrow. To get a reader use RecordBatchReader.from_batches(schema, batches) for batches, and "
        "scanner().to_reader() for a dataset.",
    )


def as_table(data: ArrowData) -> pa.Table:
    """The data as a table. A stream is read completely.

    Raises:
        ConfigurationError: see `as_rows`.
        InputDataError: the stream failed.
    """
    rows = as_rows(data)
    if isinstance(rows, pa.Table):
        return rows
    try:
        return rows.read_all()
    except DeltaError:
        raise
    except Exception as error:
        raise unreadable_data(error) from error


def _concatenated(parts: Sequence[ArrowData]) -> pa.Table:
    if not parts:
        raise ConfigurationError(
            "An empty list cannot be written.",
            cause="It does not specify any columns.",
            fix="Pass an empty table that has the columns, such as pa.schema(...).empty_table().",
        )
    tables = [as_table(part) for part in parts]
    schema = tables[0].schema
    for number, table in enumerate(tables):
        if not table.schema.equals(schema):
            raise ConfigurationError(
                f"Part {number} of the data has other columns than part 0.",
                cause=f"They are {', '.join(map(str, table.schema))}, and not {', '.join(map(str, schema))}.",
                fix="Give all parts the same columns, in the same order and with the same types.",
            )
    return pa.concat_tables(tables)
