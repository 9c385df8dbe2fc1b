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
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions.add_file import AddFile
from delta_core.clock import Clock
from delta_core.data.compression import EXTENSIONS, Compression
from delta_core.data.encoder_bounds import EncoderBounds
from delta_core.data.partitioning import Partition
from delta_core.data.statistics_collector import StatisticsAccumulator
from delta_core.data.stats_columns import StatsLeaf
from delta_core.storage.log_store import LogStore
from delta_core.storage.replacement_methods import stand_in
from delta_core.storage.uri import encode_data_path
from delta_core.table_features.parquet_format import ParquetFormat

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 64 << 20
MAX_OPEN_FILES = 64

CLOSING_THREADS = 16
FEW_FILES = 8
"""The number of files of one write that are closed one by one, before threads close the rest."""


def data_file_name(sequence: int, compression: Compression = "snappy", *, prefix: str = "part") -> str:
    """A name for a data file that no other writer uses."""
    return f"{prefix}-{sequence:05d}-{uuid.uuid4()}.c000.{EXTENSIONS[compression]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """The settings of all files of one write.

    Attributes:
        file_schema: the schema of the rows for `PartitionedWriter.write`.
        leaves: the columns with statistics, by paths in `file_schema`.
        directory: prefix below the table root.
        target_bytes: a file is closed when it reaches this size.
        max_rows: the maximum number of rows of a file.
        page_version: the version of data pages; see `ParquetFormat`.
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

    @property
    def row_group_bytes(self) -> int:
        """The size of a row group, at most the target size of a file, so that small targets are met."""
        return max(min(ROW_GROUP_BYTES, self.target_bytes), 1 << 16)


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
        name = data_file_name(sequence, target.compression, prefix=target.name_prefix)
        self.path = "/".join(part for part in (target.directory, partition.directory, name) if part)
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
                sink,
                target.file_schema,
                store_schema=False,
                # The same as Spark, and a fifth faster than byte arrays.
                store_decimal_as_integer=True,
                metadata_collector=self._footers,
                write_page_checksum=True,
                **ParquetFormat(codec=target.compression, page_version=target.page_version).writer_options(),
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
        room = ROW_GROUP_ROWS - self._buffered_rows
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
        if self._buffered_rows >= ROW_GROUP_ROWS or self._buffered_bytes >= target.row_group_bytes:
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
        return AddFile(
            path=encode_data_path(self.path),
            partition_values=self._partition.as_dict(),
            size_bytes=size_bytes,
            modification_time_ms=self._target.clock.now_ms(),
            data_change=self._target.data_change,
            stats=self._statistics.to_json(tight_bounds=self._target.tight_bounds),
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
