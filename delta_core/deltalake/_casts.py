"""Casts of data to the types of a table, as `deltalake` makes them when it merges schemas."""

from __future__ import annotations

import pyarrow as pa

from delta_core.boundary import typed_iterator
from delta_core.deltalake.phrases import arrow_name
from delta_core.dml.input_data import Rows
from delta_core.errors import SchemaMismatchError
from delta_core.schema.arrow import from_arrow, type_to_arrow
from delta_core.schema.enforcement import type_problems
from delta_core.schema.types import DataType, StructType


def cast_to_table(rows: Rows, table: StructType) -> Rows:
    """The rows with strings, numbers and booleans in the types of the table's columns.

    Raises:
        SchemaMismatchError: a value does not fit its column.
    """
    targets: dict[str, DataType] = {}
    for field in from_arrow(rows.schema):
        known = table.find(field.name)
        if known is None or not type_problems(known.data_type, field.data_type):
            continue
        if _is_cast(rows.schema.field(field.name).type) and _is_cast(type_to_arrow(known.data_type)):
            targets[field.name] = known.data_type
    if not targets:
        return rows
    schema = pa.schema(
        [
            item.with_type(type_to_arrow(targets[item.name])) if item.name in targets else item
            for item in rows.schema
        ]
    )
    if isinstance(rows, pa.Table):
        return _cast(rows, schema, targets)
    batches = (
        batch for part in rows for batch in _cast(pa.Table.from_batches([part]), schema, targets).to_batches()
    )
    return pa.RecordBatchReader.from_batches(schema, typed_iterator(batches, doing="reading the data"))


def _is_cast(data_type: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_string(data_type)
        or kinds.is_large_string(data_type)
        or kinds.is_string_view(data_type)
        or kinds.is_integer(data_type)
        or kinds.is_floating(data_type)
        or kinds.is_boolean(data_type)
    )


def _cast(rows: pa.Table, schema: pa.Schema, targets: dict[str, DataType]) -> pa.Table:
    columns = []
    for item in schema:
        column = rows.column(item.name)
        try:
            columns.append(column.cast(item.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _misfit(column, item, targets[item.name]) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _misfit(column: pa.ChunkedArray, item: pa.Field, target: DataType) -> SchemaMismatchError:
    """The error for the first value that does not fit."""
    found: object = None
    for value in column:
        try:
            value.cast(item.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            found = value.as_py()
            break
    name = arrow_name(str(target))
    words = f"Can't cast value {found} to type {name}"
    if isinstance(found, str):
        words = f"Cannot cast string '{found}' to value of {name} type"
    return SchemaMismatchError(
        f"Cast error: {words}.",
        cause=f"Column {item.name} has type {target} in the table and {column.type} in the data.",
        fix="Correct the values, or overwrite the schema.",
    )
