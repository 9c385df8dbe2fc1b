"""Whatever the caller hands over as data, as a table or a stream of record batches."""

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
    """The data as a table, or as a reader when it is a stream. Reads nothing of a stream but those in a list.

    Raises:
        ConfigurationError: the object has no Arrow interface, hands out no Arrow data or no rows of columns;
            a list is empty, or its parts have different columns.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, list | tuple):
        return _together(data)
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    except Exception as error:
        # A frame of texts and numbers in one column, a column without a name or with another's, a type that
        # pyarrow lacks; whatever the frame's own code raises.
        raise ConfigurationError(
            f"Data of type {type(data).__name__} cannot be written.",
            cause=f"Arrow cannot take it as rows of columns: {described(error)}",
            fix="Pass a table or a frame whose columns have one type each, of those that pyarrow has.",
        ) from error
    raise ConfigurationError(
        f"Data of type {type(data).__name__} cannot be written.",
        cause="It has no Arrow C data or stream interface.",
        fix="Pass a pyarrow Table, RecordBatch or RecordBatchReader, a list of them, or a data frame that "
        "exports Arrow. Of batches, RecordBatchReader.from_batches(schema, batches) makes a reader, and so "
        "does scanner().to_reader() of a dataset.",
    )


def as_table(data: ArrowData) -> pa.Table:
    """The data as a table; a stream is read whole.

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


def _together(parts: Sequence[ArrowData]) -> pa.Table:
    if not parts:
        raise ConfigurationError(
            "An empty list cannot be written.",
            cause="Nothing says which columns there are.",
            fix="Pass an empty table that has the columns, such as pa.schema(...).empty_table().",
        )
    tables = [as_table(part) for part in parts]
    schema = tables[0].schema
    for number, table in enumerate(tables):
        if not table.schema.equals(schema):
            raise ConfigurationError(
                f"Part {number} of the data has other columns than part 0.",
                cause=f"They are {', '.join(map(str, table.schema))}, and not {', '.join(map(str, schema))}.",
                fix="Give all parts the same columns, in one order and of the same types.",
            )
    return pa.concat_tables(tables)
