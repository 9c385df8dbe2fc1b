"""Schema, row count and statistics of a Parquet file, from its footer. No row is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.data.statistics_collector import statistics_from_footer
from delta_core.errors import InvalidTableError, SchemaError
from delta_core.execution.executor import JsonObject
from delta_core.parquet.footer import MalformedFooter, check_data_file
from delta_core.schema.arrow import from_arrow, is_list_like
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import StructType
from delta_core.storage.task_stores import task_store
from delta_core.table_features.table_properties import TableProperties


def read_file(task: JsonObject) -> JsonObject:
    """Read from a file's footer what its `add` action records. Two or three small reads.

    Statistics are computed for the schema in `task`, the union of the schemas of the files that were read
    before. When the final union differs, the caller reads the file again.

    Args:
        task: `{table_uri, path, schema, partition_columns, configuration}`; the schema is the table's, as
            JSON, or None for no statistics.

    Returns:
        `{schema, rows, stats}`; the schema is the file's own, as JSON, without partition columns.

    Raises:
        InvalidTableError: the file is not Parquet, or damaged.
        SchemaError: the file has a column that a Delta table cannot have.
    """
    store = task_store(task["table_uri"])
    path = task["path"]
    with store.open_input(path) as source:
        try:
            check_data_file(source)
            metadata = pq.read_metadata(source)
            arrow_schema = metadata.schema.to_arrow_schema()
        except (MalformedFooter, pa.ArrowInvalid) as error:
            raise InvalidTableError(
                f"The file {path!r} cannot be read as Parquet.",
                cause=str(error),
                fix="Move the file away, or rename it to begin with an underscore.",
            ) from error
    partitions = {name.casefold() for name in task["partition_columns"]}
    own = _own_schema(metadata, arrow_schema, path, partitions)
    stats = None
    if task["schema"] is not None:
        stats = statistics_from_footer(
            metadata,
            schema_from_json(task["schema"]),
            TableProperties.of(task["configuration"]),
            partition_columns=tuple(task["partition_columns"]),
        )
    return {"schema": schema_to_json(own), "rows": metadata.num_rows, "stats": stats}


def _own_schema(metadata: pq.FileMetaData, schema: pa.Schema, path: str, partitions: set[str]) -> StructType:
    leaves = (metadata.schema.column(index) for index in range(len(metadata.schema)))
    try:
        fields = [_readable(item, item.name, leaves) for item in schema]
        return from_arrow(pa.schema([item for item in fields if item.name.casefold() not in partitions]))
    except SchemaError as error:
        raise SchemaError(
            f"The file {path!r} cannot be part of a Delta table: {error.problem}",
            cause=error.cause,
            fix=error.fix,
        ) from error


def _readable(item: pa.Field, shown: str, leaves: Iterator[Any]) -> pa.Field:
    return pa.field(item.name, _readable_type(item.type, shown, leaves))


def _readable_type(kind: pa.DataType, shown: str, leaves: Iterator[Any]) -> pa.DataType:
    """The type that every engine reads from the file; `leaves` are the Parquet leaf columns, in order."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _readable_type(kind.storage_type, shown, leaves)
    if types.is_struct(kind):
        return pa.struct([_readable(child, f"{shown}.{child.name}", leaves) for child in kind.fields])
    if types.is_map(kind):
        key = _readable_type(kind.key_type, f"{shown}.key", leaves)
        return pa.map_(key, _readable_type(kind.item_type, f"{shown}.value", leaves))
    if is_list_like(kind):
        return pa.list_(_readable_type(kind.value_type, f"{shown}.element", leaves))
    leaf = next(leaves)
    if leaf.physical_type == "INT96":
        # INT96 has no time zone in Parquet. Every engine that writes it means an instant in UTC.
        return pa.timestamp("us", "UTC")
    if types.is_timestamp(kind) and "nanoseconds" in str(leaf.logical_type):
        raise _unsupported_type(shown, kind, "microseconds, such as coerce_timestamps='us'")
    if types.is_uint64(kind):
        raise _unsupported_type(shown, kind, "a decimal of 20 digits")
    if types.is_float16(kind):
        raise _unsupported_type(shown, kind, "a 32-bit float")
    return kind


def _unsupported_type(column: str, kind: Any, instead: str) -> SchemaError:
    return SchemaError(
        f"The column {column} has the type {kind}, which not every engine can read.",
        cause="The files of a Delta table may contain only the types of the Delta protocol.",
        fix=f"Write the file again with {instead}.",
    )
