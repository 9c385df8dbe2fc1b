"""Rows to data files: Hive-style directories, bounded file sizes, statistics.

A file appears in the store whole or not at all, under a name that no other writer uses, and is no part
of the table until a commit adds it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions.add_file import AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.partitioning import Partition, split_by_partition
from delta_core.data.statistics_collector import StatisticsAccumulator
from delta_core.data.stats_columns import SkippingProperties, StatsLeaf, stats_leaves
from delta_core.errors import ConfigurationError
from delta_core.schema.arrow import to_arrow
from delta_core.schema.conversion import convert_chunked
from delta_core.schema.evolution import require_writable_void
from delta_core.schema.types import VOID, ArrayType, DataType, MapType, StructField, StructType
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import encode_data_path

Compression = Literal["snappy", "zstd", "none"]

DEFAULT_TARGET_FILE_SIZE_BYTES = 1 << 30
ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 128 << 20
MAX_OPEN_FILES = 64

_EXTENSIONS = {"snappy": "snappy.parquet", "zstd": "zstd.parquet", "none": "parquet"}


def write_data_files(
    store: LogStore,
    table: pa.Table | pa.RecordBatchReader,
    *,
    schema: StructType,
    partition_columns: Sequence[str] = (),
    properties: SkippingProperties | None = None,
    directory: str = "",
    target_file_size_bytes: int = DEFAULT_TARGET_FILE_SIZE_BYTES,
    max_rows_per_file: int | None = None,
    compression: Compression = "snappy",
    data_change: bool = True,
    tight_bounds: bool | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> list[AddFile]:
    """Write rows as Parquet files and describe each as an `add` action. Commits nothing.

    Memory is bounded by one row group per open partition, at most 64 of them, for a reader; a table is
    in memory already. If anything fails, files already finished are deleted.

    Args:
        store: the table's store.
        table: the rows, conformed to `schema`.
        schema: the table's schema.
        partition_columns: names as in `schema`.
        properties: which columns get statistics; None for the default.
        directory: prefix below the table root for the files, such as a job's own directory.
        target_file_size_bytes: a file is closed once it has reached this size; it can be larger by one
            row group.
        max_rows_per_file: no file gets more rows.
        compression: the Parquet codec.
        data_change: the `dataChange` flag of the actions.
        tight_bounds: see `stats_json`.
        clock: gives the actions' modification time.

    Returns:
        One action per file, in the order they were closed. No rows give no file.
    """
    if target_file_size_bytes <= 0 or (max_rows_per_file is not None and max_rows_per_file <= 0):
        raise ConfigurationError(
            "A data file needs a positive size and number of rows",
            cause=f"target_file_size_bytes={target_file_size_bytes}, max_rows_per_file={max_rows_per_file}",
            fix="Pass positive numbers, or leave them out",
        )
    if compression not in _EXTENSIONS:
        raise ConfigurationError(
            f"Unknown compression {compression!r}",
            cause="Every reader of the table must know the codec",
            fix=f"Use one of {', '.join(_EXTENSIONS)}",
        )
    require_writable_void(schema)
    names = [_canonical(schema, name) for name in partition_columns]
    plan = _FilePlan(
        store=store,
        schema=schema,
        partition_columns=names,
        leaves=stats_leaves(schema, properties, partition_columns=names),
        directory=directory.strip("/"),
        target_bytes=target_file_size_bytes,
        max_rows=max_rows_per_file,
        compression=compression,
        data_change=data_change,
        tight_bounds=tight_bounds,
        clock=clock,
    )
    with _PartitionedWriter(plan) as writer:
        for part in _tables(table):
            for partition, rows in split_by_partition(part, schema, names):
                writer.write(partition, rows)
        return writer.finish()


def data_file_name(sequence: int, compression: Compression = "snappy") -> str:
    """A data file's name that no other writer uses."""
    return f"part-{sequence:05d}-{uuid.uuid4()}.c000.{_EXTENSIONS[compression]}"


class _FilePlan:
    """What all files of one write share."""

    def __init__(
        self,
        *,
        store: LogStore,
        schema: StructType,
        partition_columns: Sequence[str],
        leaves: list[StatsLeaf],
        directory: str,
        target_bytes: int,
        max_rows: int | None,
        compression: Compression,
        data_change: bool,
        tight_bounds: bool | None,
        clock: Clock,
    ) -> None:
        self.store = store
        self.leaves = leaves
        self.directory = directory
        self.target_bytes = target_bytes
        self.max_rows = max_rows
        self.compression: Compression = compression
        self.data_change = data_change
        self.tight_bounds = tight_bounds
        self.clock = clock
        self.file_schema = to_arrow(_physical_schema(schema, partition_columns))
        # A first row group no larger than the target lets small targets be met.
        self.row_group_bytes = max(min(ROW_GROUP_BYTES, target_bytes), 1 << 16)


class _OpenFile:
    """One Parquet file being written."""

    def __init__(self, plan: _FilePlan, partition: Partition, sequence: int) -> None:
        self._plan = plan
        self._partition = partition
        self._buffer: list[pa.Table] = []
        self._buffered_rows = 0
        self._buffered_bytes = 0
        self._statistics = StatisticsAccumulator(plan.leaves)
        name = data_file_name(sequence, plan.compression)
        self.path = "/".join(part for part in (plan.directory, partition.directory, name) if part)
        self._stack = ExitStack()
        self._sink = self._stack.enter_context(plan.store.open_output(self.path))
        try:
            self._writer = pq.ParquetWriter(
                self._sink,
                plan.file_schema,
                compression=plan.compression,
                store_schema=False,
                write_page_checksum=True,
            )
        except BaseException as error:
            self.abort(error)
            raise

    @property
    def num_rows(self) -> int:
        return self._statistics.num_records

    @property
    def full(self) -> bool:
        plan = self._plan
        if plan.max_rows is not None and self.num_rows >= plan.max_rows:
            return True
        flushed = self._buffered_rows == 0 and self.num_rows > 0
        return bool(flushed and self._sink.tell() >= plan.target_bytes)

    def write(self, rows: pa.Table) -> int:
        """Take some of the rows, from the start; returns how many."""
        plan = self._plan
        room = ROW_GROUP_ROWS - self._buffered_rows
        if plan.max_rows is not None:
            room = min(room, plan.max_rows - self.num_rows)
        per_row = max(rows.nbytes / rows.num_rows, 1 / 8)
        by_bytes = int((plan.row_group_bytes - self._buffered_bytes) / per_row)
        taken = min(int(rows.num_rows), room, max(by_bytes, 1))
        part = rows.slice(0, taken)
        self._buffer.append(part)
        self._buffered_rows += taken
        self._buffered_bytes += int(per_row * taken)
        self._statistics.update(part)
        if self._buffered_rows >= ROW_GROUP_ROWS or self._buffered_bytes >= plan.row_group_bytes:
            self._flush()
        return taken

    def close(self) -> AddFile:
        """Finish the file; it is durable in the store afterwards."""
        try:
            self._flush()
            self._writer.close()
            size_bytes = int(self._sink.tell())
        except BaseException as error:
            self.abort(error)
            raise
        self._stack.close()
        return AddFile(
            path=encode_data_path(self.path),
            partition_values=self._partition.as_dict(),
            size_bytes=size_bytes,
            modification_time_ms=self._plan.clock.now_ms(),
            data_change=self._plan.data_change,
            stats=self._statistics.to_json(tight_bounds=self._plan.tight_bounds),
        )

    def abort(self, error: BaseException) -> None:
        """Leave nothing in the store."""
        try:
            self._stack.__exit__(type(error), error, error.__traceback__)
        except BaseException as raised:
            # The store's context re-raises what it was given; anything else is news.
            if raised is not error:
                raise

    def _flush(self) -> None:
        if not self._buffered_rows:
            return
        group = pa.concat_tables(self._buffer)
        self._writer.write_table(group, row_group_size=group.num_rows)
        self._buffer.clear()
        self._buffered_rows = 0
        self._buffered_bytes = 0


class _PartitionedWriter:
    """The open files of one write, one per partition, the least recently used closed first."""

    def __init__(self, plan: _FilePlan) -> None:
        self._plan = plan
        self._open: dict[Partition, _OpenFile] = {}
        self._done: list[AddFile] = []
        self._paths: list[str] = []
        self._sequence = 0

    def __enter__(self) -> _PartitionedWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        for file in self._open.values():
            file.abort(error)
        for path in self._paths:
            self._plan.store.delete(path)

    def write(self, partition: Partition, rows: pa.Table) -> None:
        rows = _to_file_schema(rows, self._plan.file_schema)
        while rows.num_rows:
            file = self._open.pop(partition, None)
            if file is None:
                if len(self._open) >= MAX_OPEN_FILES:
                    self._close(next(iter(self._open)))
                file = _OpenFile(self._plan, partition, self._sequence)
                self._sequence += 1
            self._open[partition] = file
            rows = rows.slice(file.write(rows))
            if file.full:
                self._close(partition)

    def finish(self) -> list[AddFile]:
        for partition in list(self._open):
            self._close(partition)
        return self._done

    def _close(self, partition: Partition) -> None:
        file = self._open.pop(partition)
        self._done.append(file.close())
        self._paths.append(file.path)


def _tables(data: pa.Table | pa.RecordBatchReader) -> Iterator[pa.Table]:
    if isinstance(data, pa.Table):
        yield data
        return
    pending: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in data:
        pending.append(batch)
        pending_bytes += batch.nbytes
        # Splitting by partition costs per call, so small batches are gathered first.
        if pending_bytes >= ROW_GROUP_BYTES // 4:
            yield pa.Table.from_batches(pending)
            pending, pending_bytes = [], 0
    if pending:
        yield pa.Table.from_batches(pending)


def _physical_schema(schema: StructType, partition_columns: Iterable[str]) -> StructType:
    """The schema inside data files: without partition columns and without `void`."""
    partitions = set(partition_columns)
    return _without_void(StructType(tuple(field for field in schema if field.name not in partitions)))


def _without_void(schema: StructType) -> StructType:
    return StructType(
        tuple(
            StructField(
                name=f.name,
                data_type=_strip(f.data_type),
                nullable=f.nullable,
                metadata=f.metadata,
            )
            for f in schema
            if f.data_type != VOID
        )
    )


def _strip(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return _without_void(data_type)
        case ArrayType():
            return ArrayType(
                element_type=_strip(data_type.element_type), contains_null=data_type.contains_null
            )
        case MapType():
            return MapType(
                key_type=data_type.key_type,
                value_type=_strip(data_type.value_type),
                value_contains_null=data_type.value_contains_null,
            )
        case _:
            return data_type


def _to_file_schema(rows: pa.Table, file_schema: pa.Schema) -> pa.Table:
    if rows.schema.equals(file_schema):
        return rows
    columns = [
        column if column.type == field.type else convert_chunked(column, field.type)
        for field in file_schema
        for column in (rows.column(field.name),)
    ]
    return pa.Table.from_arrays(columns, schema=file_schema)


def _canonical(schema: StructType, name: str) -> str:
    field = schema.find(name)
    if field is None:
        raise ConfigurationError(
            f"Partition column {name} is not in the schema",
            cause=f"The columns are {', '.join(schema.names)}",
            fix="Partition by one of these",
        )
    return field.name
