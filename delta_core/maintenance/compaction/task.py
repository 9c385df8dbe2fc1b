"""Rewriting one bin: the task function of compaction, pure Arrow, importable on any worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.data.parquet_writer import data_file_name
from delta_core.data.statistics_collector import StatisticsAccumulator, statistics_from_footer
from delta_core.data.stats_columns import stats_leaves
from delta_core.errors import InvalidTableError, MissingDataFileError, ObjectNotFoundError, VerificationError
from delta_core.execution.executor import JsonObject
from delta_core.schema.arrow import to_arrow
from delta_core.schema.conversion import convert_chunked, floor_to_microseconds
from delta_core.schema.json import schema_from_json
from delta_core.schema.partition_values import hive_directory
from delta_core.schema.types import DOUBLE, FLOAT, VOID, StructType
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.storage.uri import encode_data_path
from delta_core.table_features.table_properties import TableProperties

ROW_GROUP_ROWS = 1 << 20
"""Rows that are gathered before they are written as one row group."""

GATHER_BYTES = 192 << 20
"""Gathering stops here too, so that wide rows do not fill the memory."""

_WHOLE_FILE_BYTES = 64 << 20
_LOW_CARDINALITY_BYTES_PER_VALUE = 2.5
_DICTIONARY_BYTES_PER_VALUE = 8.0

TASK_MEMORY_BYTES = 3 * GATHER_BYTES
"""What one task holds at most: rows being read, rows waiting, rows being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Encoding:
    """What the first file shows about the columns.

    Attributes:
        low_cardinality: string columns read and written as dictionaries, so that no text is copied.
        dictionary: columns for which the writer should try a dictionary; trying costs time.
    """

    low_cardinality: tuple[str, ...]
    dictionary: tuple[str, ...]


def rewrite_bin(task: JsonObject) -> JsonObject:
    """Write the rows of the task's files, in order, as one new file.

    Memory is bounded by two gatherings of rows, one being read while the other is written. The new file
    appears whole or not at all.

    Args:
        task: made by `compaction_task`.

    Returns:
        `path` (as in the log), `size_bytes`, `modification_time_ms`, `stats` and `rows` of the file.

    Raises:
        MissingDataFileError: a file is not in the store.
        InvalidTableError: a file cannot be read, or its types do not fit the table's.
        VerificationError: rows were lost or gained on the way; the new file is deleted.
    """
    store = open_store(task["table_uri"])
    schema = schema_from_json(task["schema"])
    partition_columns = tuple(task["partition_columns"])
    rewrite = _Rewrite(
        store=store,
        paths=tuple(task["paths"]),
        schema=schema,
        partition_columns=partition_columns,
        properties=TableProperties.of(task["configuration"]),
        compression=task["compression"],
    )
    directory = "/".join(hive_directory(name, task["partition_values"][name]) for name in partition_columns)
    path = "/".join(part for part in (directory, data_file_name(0, task["compression"])) if part)
    rows_read, footer, stats = rewrite.run(path)
    if rows_read != footer.num_rows:
        store.delete(path)
        raise VerificationError(
            f"{rows_read} rows were read and {footer.num_rows} written",
            cause="a data file changed while it was read, or a library lost rows",
            fix="run the compaction again; the table is unchanged",
        )
    info = store.head(path)
    return {
        "path": encode_data_path(path),
        "size_bytes": info.size_bytes,
        "modification_time_ms": info.modified_ms,
        "stats": stats,
        "rows": footer.num_rows,
    }


def compaction_task(
    *,
    table_uri: str,
    paths: Sequence[str],
    partition_values: Mapping[str, str | None],
    partition_columns: Sequence[str],
    schema_string: str,
    configuration: Mapping[str, str],
    compression: str,
) -> dict[str, Any]:
    """The task for `rewrite_bin`; `paths` are store paths (decoded, relative to the table root)."""
    return {
        "table_uri": table_uri,
        "paths": list(paths),
        "partition_values": dict(partition_values),
        "partition_columns": list(partition_columns),
        "schema": schema_string,
        "configuration": dict(configuration),
        "compression": compression,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewrite:
    store: LogStore
    paths: tuple[str, ...]
    schema: StructType
    partition_columns: tuple[str, ...]
    properties: TableProperties
    compression: str

    def run(self, path: str) -> tuple[int, pq.FileMetaData, str]:
        """Write the new file; returns rows read, its footer, its statistics."""
        encoding = self._encoding()
        target = self._file_schema(encoding)
        floats = StatisticsAccumulator(leaf for leaf in self._leaves() if leaf.data_type in (FLOAT, DOUBLE))
        footers: list[pq.FileMetaData] = []
        rows_read = 0
        with (
            self.store.open_output(path) as sink,
            pq.ParquetWriter(
                sink,
                target,
                compression=self.compression,
                use_dictionary=list(encoding.dictionary),
                store_schema=False,
                # As Spark writes them; also much faster than byte arrays.
                store_decimal_as_integer=True,
                write_page_checksum=True,
                metadata_collector=footers,
            ) as writer,
        ):
            for rows in _read_ahead(self._gathered(target, encoding)):
                rows_read += rows.num_rows
                floats.update(rows)
                writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        return rows_read, footers[0], self._statistics(footers[0], floats)

    def _leaves(self) -> Any:
        return stats_leaves(self.schema, self.properties, partition_columns=self.partition_columns)

    def _statistics(self, footer: pq.FileMetaData, floats: StatisticsAccumulator) -> str:
        """The footer's statistics; floating-point bounds from the rows, since footers hide NaN."""
        stats = orjson.loads(
            statistics_from_footer(
                footer, self.schema, self.properties, partition_columns=self.partition_columns
            )
        )
        seen = orjson.loads(floats.to_json())
        for key in ("minValues", "maxValues", "nullCount", "nanCount"):
            if seen.get(key):
                stats[key] = _merged(stats.get(key) or {}, seen[key])
        return orjson.dumps(stats).decode()

    def _data_fields(self) -> StructType:
        partitions = {name.casefold() for name in self.partition_columns}
        return StructType(
            tuple(f for f in self.schema if f.name.casefold() not in partitions and f.data_type != VOID)
        )

    def _file_schema(self, encoding: _Encoding) -> pa.Schema:
        """What the new file's columns are in memory; nullable, since older files may lack a column."""
        fields = []
        for item in to_arrow(self._data_fields()):
            if item.name in encoding.low_cardinality:
                item = item.with_type(pa.dictionary(pa.int32(), pa.string()))
            fields.append(item.with_nullable(True))
        return pa.schema(fields)

    def _encoding(self) -> _Encoding:
        strings = {item.name for item in to_arrow(self._data_fields()) if pa.types.is_string(item.type)}
        low, dictionary = [], []
        with _readable(self.paths[0]), self.store.open_input(self.paths[0]) as source:
            footer = pq.read_metadata(source)
            for position in range(footer.num_columns if footer.num_row_groups else 0):
                chunk = footer.row_group(0).column(position)
                per_value = chunk.total_uncompressed_size / max(1, chunk.num_values)
                if not chunk.has_dictionary_page or per_value >= _DICTIONARY_BYTES_PER_VALUE:
                    continue
                dictionary.append(chunk.path_in_schema)
                if chunk.path_in_schema in strings and per_value < _LOW_CARDINALITY_BYTES_PER_VALUE:
                    low.append(chunk.path_in_schema)
        return _Encoding(low_cardinality=tuple(low), dictionary=tuple(dictionary))

    def _gathered(self, target: pa.Schema, encoding: _Encoding) -> Iterator[pa.Table]:
        parts: list[pa.Table] = []
        rows = size_bytes = 0
        for path in self.paths:
            for table in self._tables(path, encoding):
                with _readable(path):
                    part = _fit(table, target)
                if parts and (rows + part.num_rows > ROW_GROUP_ROWS or size_bytes >= GATHER_BYTES):
                    yield pa.concat_tables(parts).unify_dictionaries()
                    parts, rows, size_bytes = [], 0, 0
                parts.append(part)
                rows += part.num_rows
                size_bytes += part.nbytes
        if parts:
            yield pa.concat_tables(parts).unify_dictionaries()

    def _tables(self, path: str, encoding: _Encoding) -> Iterator[pa.Table]:
        with _readable(path), self.store.open_input(path) as source:
            reader = pq.ParquetFile(
                source,
                read_dictionary=list(encoding.low_cardinality),
                coerce_int96_timestamp_unit="us",
                # The originals will be deleted one day, so damage must not be copied unseen.
                page_checksum_verification=True,
            )
            groups = range(reader.metadata.num_row_groups)
            sizes = [reader.metadata.row_group(group).total_byte_size for group in groups]
            if sum(sizes) <= _WHOLE_FILE_BYTES and len(sizes) <= 1:
                yield reader.read(use_threads=False)
                return
            for group in groups:
                if sizes[group] <= GATHER_BYTES:
                    yield reader.read_row_group(group, use_threads=False)
                    continue
                for batch in reader.iter_batches(row_groups=[group], use_threads=False):
                    yield pa.Table.from_batches([batch])


def _fit(table: pa.Table, target: pa.Schema) -> pa.Table:
    """The table's columns as the new file has them; a column that the file lacks is null."""
    if table.schema.equals(target):
        return table
    by_name = {name.casefold(): index for index, name in enumerate(table.schema.names)}
    columns = []
    for item in target:
        index = by_name.get(item.name.casefold())
        if index is None:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, item.type)]))
            continue
        column = table.column(index)
        if column.type != item.type:
            column = _converted(column, item.type)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=target)


def _converted(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(wanted):
        # Readers see nanoseconds cut to microseconds, so that is what the row is.
        chunks = [floor_to_microseconds(chunk) for chunk in column.chunks]
        return (
            convert_chunked(pa.chunked_array(chunks), wanted) if chunks else convert_chunked(column, wanted)
        )
    if pa.types.is_dictionary(column.type):
        return column.cast(wanted)
    return convert_chunked(column, wanted.value_type).dictionary_encode()


def _read_ahead(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same tables, the next one being read while the caller works on this one."""
    with ThreadPoolExecutor(1, thread_name_prefix="deltaward-read") as pool:
        following = pool.submit(next, tables, None)
        while (table := following.result()) is not None:
            following = pool.submit(next, tables, None)
            yield table


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn a data file's failure into an error that names the file."""
    try:
        yield
    except ObjectNotFoundError as error:
        raise MissingDataFileError(
            f"the data file {path!r} is not in the store",
            cause="it was deleted although the table still lists it",
            fix="restore the file, or restore the table to a version without it",
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise InvalidTableError(
            f"the data file {path!r} cannot be read",
            cause=str(error),
            fix="check whether the file is damaged; the table is unchanged",
        ) from error


def _merged(first: dict[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(first)
    for key, value in second.items():
        known = result.get(key)
        result[key] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result
