"""Writing of Parquet files: one per partition, row group by row group, with their statistics.

Readers see a complete file or no file, under a name that no other writer uses. Threads close many files in
parallel, since an object store accepts parallel uploads. On a disk, all files are flushed together at the
end.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions.add_file import AddFile
from delta_core.clock import Clock
from delta_core.data.partition_groups import Partition, PartitionedRows, PartitionGroups
from delta_core.data.small_files import grouped_statistics
from delta_core.data.statistics_collector import EncoderBounds, FileStatistics, StatisticsAccumulator
from delta_core.errors import ConfigurationError
from delta_core.storage.log_store import LogStore, stand_in
from delta_core.storage.uri import encode_data_path
from delta_core.table_features.parquet_format import ParquetFormat, ParquetOptions
from delta_core.table_features.stats_leaves import StatsLeaf
from delta_core.table_features.table_properties import PARQUET_COMPRESSION_CODEC, TableProperties

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 64 << 20
MAX_OPEN_FILES = 64

MOST_GROUPED_BYTES = 4 * ROW_GROUP_BYTES
"""Rows up to this size are put in the order of their partitions at once, which copies them."""

CLOSING_THREADS = 16
FEW_FILES = 8
"""The number of files of one write that are closed one by one, before threads close the rest."""


Compression = Literal["snappy", "zstd", "gzip", "brotli", "lz4_raw", "none"]

DEFAULT_COMPRESSION: Compression = "snappy"

EXTENSIONS: dict[str, str] = {
    "snappy": "snappy.parquet",
    "zstd": "zstd.parquet",
    "gzip": "gz.parquet",
    "brotli": "br.parquet",
    "lz4_raw": "lz4raw.parquet",
    "none": "parquet",
}
"""The file name extension of each codec."""


def data_file_name(
    sequence: int, compression: Compression = DEFAULT_COMPRESSION, *, prefix: str = "part"
) -> str:
    """A name for a data file that no other writer uses."""
    return f"{prefix}-{sequence:05d}-{uuid.uuid4()}.c000.{EXTENSIONS[compression]}"


@dataclass(frozen=True, kw_only=True)
class FileTarget:
    """The settings of all files of one write.

    Attributes:
        file_schema: the schema of the rows for `PartitionedWriter.write`.
        leaves: the columns with statistics, by paths in `file_schema`.
        directory: prefix below the table root.
        target_bytes: a file is closed when it reaches this size.
        max_rows: the maximum number of rows of a file.
        page_version: the version of data pages; see `ParquetFormat`.
        parquet: the encoding that the caller chooses.
        name_prefix: the start of the file names.
    """

    store: LogStore
    file_schema: pa.Schema
    leaves: Sequence[StatsLeaf]
    directory: str
    target_bytes: int
    max_rows: int | None
    compression: Compression
    data_change: bool
    tight_bounds: bool | None
    clock: Clock
    page_version: str = "1.0"
    name_prefix: str = "part"
    parquet: ParquetOptions = field(default_factory=ParquetOptions)

    @cached_property
    def encoder_options(self) -> dict[str, Any]:
        """The keyword arguments of `pq.ParquetWriter` that are the same for each file."""
        return {
            "store_schema": False,
            # The same as Spark, and a fifth faster than byte arrays.
            "store_decimal_as_integer": True,
            "write_page_checksum": True,
            **ParquetFormat(codec=self.compression, page_version=self.page_version).writer_options(),
            **self.parquet.writer_arguments(self.file_schema),
        }

    @property
    def row_group_rows(self) -> int:
        """The maximum number of rows of a row group."""
        return min(ROW_GROUP_ROWS, self.parquet.row_group_rows or ROW_GROUP_ROWS)

    @property
    def row_group_bytes(self) -> int:
        """The size of a row group, at most the target size of a file, so that small targets are met."""
        return max(min(ROW_GROUP_BYTES, self.target_bytes), 1 << 16)

    def new_path(self, partition: Partition, sequence: int) -> str:
        """A path below the table root that no other writer uses."""
        name = data_file_name(sequence, self.compression, prefix=self.name_prefix)
        return "/".join(part for part in (self.directory, partition.directory, name) if part)

    def add(self, path: str, partition: Partition, *, size_bytes: int, statistics: FileStatistics) -> AddFile:
        """The action for a file that was just written."""
        return AddFile(
            path=encode_data_path(path),
            partition_values=partition.as_dict(),
            size_bytes=size_bytes,
            modification_time_ms=self.clock.now_ms(),
            data_change=self.data_change,
            stats=statistics.to_json(tight_bounds=self.tight_bounds),
        )


class _OpenFile:
    """One Parquet file being written."""

    def __init__(
        self,
        target: FileTarget,
        partition: Partition,
        sequence: int,
        open_output: Callable[[str], AbstractContextManager[pa.NativeFile]],
    ) -> None:
        self._target = target
        self._open_output = open_output
        self._partition = partition
        self._buffer: list[pa.Table] = []
        self._buffered_rows = 0
        self._buffered_bytes = 0
        self._bounds = EncoderBounds(target.leaves, target.file_schema)
        self._statistics = StatisticsAccumulator(target.leaves, bounds_elsewhere=self._bounds.paths)
        self._footers: list[pq.FileMetaData] = []
        self.path = target.new_path(partition, sequence)
        self._stack = ExitStack()
        self._opened: tuple[pa.NativeFile, pq.ParquetWriter] | None = None

    def _open(self) -> tuple[pa.NativeFile, pq.ParquetWriter]:
        """The file in the store and its writer. Opened by the thread that writes the first row group."""
        if self._opened is not None:
            return self._opened
        target = self._target
        sink = self._stack.enter_context(self._open_output(self.path))
        try:
            writer = pq.ParquetWriter(
                sink, target.file_schema, metadata_collector=self._footers, **target.encoder_options
            )
        except BaseException as error:
            self.abort(error)
            raise
        # Otherwise garbage collection of an open writer would write a footer into the closed file.
        self._stack.callback(setattr, writer, "is_open", False)
        self._opened = sink, writer
        return self._opened

    @property
    def num_rows(self) -> int:
        return self._statistics.num_records

    @property
    def full(self) -> bool:
        target = self._target
        if target.max_rows is not None and self.num_rows >= target.max_rows:
            return True
        if self._buffered_rows or self._opened is None:
            return False
        return bool(self._opened[0].tell() >= target.target_bytes)

    def write(self, rows: pa.Table) -> int:
        """Accept rows from the start of a table, until the file is full. Returns the number of rows."""
        target = self._target
        room = target.row_group_rows - self._buffered_rows
        if target.max_rows is not None:
            room = min(room, target.max_rows - self.num_rows)
        per_row = max(rows.nbytes / rows.num_rows, 1 / 8)
        by_bytes = int((target.row_group_bytes - self._buffered_bytes) / per_row)
        count = min(int(rows.num_rows), room, max(by_bytes, 1))
        part = rows.slice(0, count)
        self._buffer.append(part)
        self._buffered_rows += count
        self._buffered_bytes += int(per_row * count)
        self._statistics.update(part)
        if self._buffered_rows >= target.row_group_rows or self._buffered_bytes >= target.row_group_bytes:
            self._flush()
        return count

    def close(self) -> AddFile:
        """Finish the file. `PartitionedWriter.finish` flushes it when the store can flush files together."""
        try:
            self._flush()
            sink, writer = self._open()
            writer.close()
            self._bounds.add_footer(self._footers[0], self._statistics)
            size_bytes = int(sink.tell())
        except BaseException as error:
            self.abort(error)
            raise
        self._stack.close()
        return self._target.add(
            self.path, self._partition, size_bytes=size_bytes, statistics=self._statistics.found()
        )

    def abort(self, error: BaseException) -> None:
        """Discard the file: nothing remains in the store."""
        try:
            self._stack.__exit__(type(error), error, error.__traceback__)
        except BaseException as raised:
            # The store's context manager raises the given error again; any other error is new.
            if raised is not error:
                raise

    def _flush(self) -> None:
        if not self._buffered_rows:
            return
        group = pa.concat_tables(self._buffer)
        self._bounds.add_group(group, self._statistics)
        _, writer = self._open()
        writer.write_table(group, row_group_size=group.num_rows)
        self._buffer.clear()
        self._buffered_rows = 0
        self._buffered_bytes = 0


class PartitionedWriter:
    """The open files of one write, one per partition. The least recently used file is closed first.

    A context manager: when it ends with an error, nothing remains in the store.
    """

    def __init__(self, target: FileTarget) -> None:
        self._target = target
        self._open: dict[Partition, _OpenFile] = {}
        self._done: list[AddFile] = []
        self._closing: deque[tuple[_OpenFile, Future[AddFile]]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._paths: list[str] = []
        self._sequence = 0
        # A disk that need not flush each file accepts files as fast as they are encoded, so needs no threads.
        unflushed = stand_in(target.store, "open_unflushed")
        self._is_flushed_last = unflushed is not None
        self._open_output = unflushed or target.store.open_output
        self._create = stand_in(target.store, "create_unflushed")

    def __enter__(self) -> PartitionedWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        for file, closing in self._closing:
            if closing.cancelled():
                file.abort(error)
            elif closing.exception() is None:
                self._paths.append(file.path)
        for file in self._open.values():
            file.abort(error)
        for path in self._paths:
            self._target.store.delete(path)

    def write(self, partition: Partition, rows: pa.Table) -> None:
        """Write rows of one partition, with the target's `file_schema`."""
        while rows.num_rows:
            file = self._open.pop(partition, None)
            if file is None:
                if len(self._open) >= MAX_OPEN_FILES:
                    self._close(next(iter(self._open)))
                file = _OpenFile(self._target, partition, self._sequence, self._open_output)
                self._sequence += 1
            self._open[partition] = file
            rows = rows.slice(file.write(rows))
            if file.full:
                self._close(partition)

    def takes_groups(self, rows: PartitionedRows) -> bool:
        """Whether `write_groups` is faster than `write`: many partitions, few bytes, a disk."""
        return (
            self._create is not None
            and len(rows.partitions) > MAX_OPEN_FILES
            and rows.rows.nbytes <= MOST_GROUPED_BYTES
        )

    def write_groups(self, groups: PartitionGroups) -> None:
        """Write rows of many partitions, with the target's `file_schema`: a file per small partition.

        A partition that has an open file, or that may need several files, is written as by `write`.
        """
        statistics = grouped_statistics(groups.rows, groups.bounds, self._target.leaves)
        bounds: list[int] = groups.bounds.tolist()
        mean_bytes = groups.rows.nbytes / max(groups.rows.num_rows, 1)
        for index, partition in enumerate(groups.partitions):
            found = None if statistics is None else next(statistics)
            part = groups.rows.slice(bounds[index], bounds[index + 1] - bounds[index])
            small = part.num_rows * mean_bytes * 8 < self._target.row_group_bytes
            few = part.num_rows <= (self._target.max_rows or self._target.row_group_rows)
            if found is None or not small or not few or partition in self._open:
                self.write(partition, part)
            else:
                self._write_whole(partition, part, found)

    def _write_whole(self, partition: Partition, rows: pa.Table, statistics: FileStatistics) -> None:
        """Write all rows of one file at once."""
        target = self._target
        assert self._create is not None
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, target.file_schema, **target.encoder_options) as writer:
            writer.write_table(rows, row_group_size=rows.num_rows)
        path = target.new_path(partition, self._sequence)
        self._sequence += 1
        data = sink.getvalue()
        self._create(path, data)
        self._paths.append(path)
        self._done.append(target.add(path, partition, size_bytes=data.size, statistics=statistics))

    def finish(self) -> list[AddFile]:
        """Close all files; returns one action per file, in the order in which they were closed."""
        for partition in list(self._open):
            self._close(partition)
        self._wait(most_left=0)
        if self._pool is not None:
            self._pool.shutdown()
        if self._is_flushed_last:
            self._target.store.persist(self._paths)
        return self._done

    def _close(self, partition: Partition) -> None:
        file = self._open.pop(partition)
        if self._is_flushed_last or len(self._done) < FEW_FILES:
            self._done.append(file.close())
            self._paths.append(file.path)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(CLOSING_THREADS, "deltaward-write")
        self._wait(most_left=2 * CLOSING_THREADS)
        self._closing.append((file, self._pool.submit(file.close)))

    def _wait(self, *, most_left: int) -> None:
        """Collect the actions of closed files until at most `most_left` files are still being closed."""
        while len(self._closing) > most_left:
            file, closing = self._closing[0]
            self._done.append(closing.result())
            self._paths.append(file.path)
            self._closing.popleft()


def choose_compression(requested: str | None, properties: TableProperties) -> Compression:
    """The requested codec, else the codec of the table's property, else snappy.

    Raises:
        ConfigurationError: the codec is unknown.
        InvalidTablePropertyError: the table's property has a codec that this library cannot write.
    """
    codec = PARQUET_COMPRESSION_CODEC.of(properties.configuration) if requested is None else requested
    if not isinstance(codec, str) or codec not in EXTENSIONS:
        raise ConfigurationError(
            f"The compression {codec!r} is unknown.",
            cause="Every reader of the table must support the codec.",
            fix=f"Use one of {', '.join(EXTENSIONS)}.",
        )
    return cast(Compression, codec)
