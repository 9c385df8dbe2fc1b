"""Reads all rows of data files, in the form in which they are rewritten."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.errors import InvalidTableError
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore

_WHOLE_FILE_BYTES = 64 << 20
_LARGEST_BATCH_ROWS = 1 << 16
_SMALLEST_BATCH_ROWS = 1 << 8
# Bytes of a value in Arrow by physical type: a string has at least an offset, decimals of any width 16.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "BYTE_ARRAY": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_OTHER_WIDTH = 16

OpenedFile: TypeAlias = "Callable[[str, pq.FileMetaData], None]"
"""Called with each file's path and footer before its first rows, in the thread that reads the file."""

ColumnsOfFile: TypeAlias = "Callable[[pa.Schema], Sequence[str] | None]"
"""Maps a file's schema to the columns to read; None reads all columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of reading files.

    Attributes:
        dictionaries: string columns to read as dictionaries.
        columns: selects the columns of each file; None reads all columns of all files.
        opened: see `OpenedFile`.
        access: the roots outside the table that the files may be in.
    """

    dictionaries: Sequence[str] = ()
    columns: ColumnsOfFile | None = None
    opened: OpenedFile | None = None
    access: DataAccess = TABLE_ONLY


_ALL_COLUMNS = ReadOptions()


def read_files(
    store: LogStore,
    paths: Sequence[str],
    *,
    threads: int,
    max_bytes: int,
    options: ReadOptions = _ALL_COLUMNS,
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of files in order, each table with the path of its file. Small files are read in parallel.

    Args:
        store: the table's store.
        paths: as in the log.
        threads: number of files to read at a time.
        max_bytes: most decoded bytes of all tables that are read ahead, and of one table.
        options: what to read.

    Raises:
        MissingDataFileError: a file is not in the store.
        InvalidTableError: a file cannot be read.
        PathEscapeError: a file is neither in the table nor below a root that the options allow.
    """
    if threads <= 1:
        for path in paths:
            for table in read_tables(store, path, max_bytes=max_bytes, options=options):
                yield path, table
        return
    # Many files per thread: reading a small file takes milliseconds, less than waking up the caller.
    window = 8 * threads
    small = max_bytes // window
    pool = ThreadPoolExecutor(threads, thread_name_prefix="deltaward-file")
    try:
        reading: deque[tuple[str, Future[pa.Table | None]]] = deque()
        following = iter(paths)
        while True:
            while len(reading) < window and (name := next(following, None)) is not None:
                reading.append((name, pool.submit(_read_small, store, name, small, options)))
            if not reading:
                return
            path, future = reading.popleft()
            whole = future.result()
            if whole is not None:
                yield path, whole
                continue
            for table in read_tables(store, path, max_bytes=max_bytes, options=options, use_threads=True):
                yield path, table
    finally:
        pool.shutdown(cancel_futures=True)


def read_tables(
    store: LogStore,
    path: str,
    *,
    max_bytes: int,
    options: ReadOptions = _ALL_COLUMNS,
    use_threads: bool = False,
) -> Iterator[pa.Table]:
    """A file's rows in order: as one table, by row group, or in batches if a row group is too large.

    Args:
        store: the table's store.
        path: as in the log.
        max_bytes: row groups above this size are read in batches.
        options: what to read.
        use_threads: decode columns in parallel, in Arrow's threads.

    Raises:
        MissingDataFileError: the file is not in the store.
        InvalidTableError: the file cannot be read.
        PathEscapeError: the file is neither in the table nor below a root that the options allow.
    """
    with readable(path), options.access.open_logged(path, store=store) as source:
        reader = _reader(source, options.dictionaries)
        names = _columns(reader, options)
        metadata = reader.metadata
        groups = range(metadata.num_row_groups)
        sizes = [decoded_bytes(metadata, group) for group in groups]
        _require_whole(metadata)
        if options.opened is not None:
            options.opened(path, metadata)
        if _is_small(metadata, max_bytes):
            yield _checked(reader.read(use_threads=use_threads, columns=names), metadata)
            return
        for group in groups:
            if sizes[group] <= max_bytes:
                yield reader.read_row_group(group, use_threads=use_threads, columns=names)
                continue
            per_row = sizes[group] / max(1, metadata.row_group(group).num_rows)
            rows = min(_LARGEST_BATCH_ROWS, max(_SMALLEST_BATCH_ROWS, int(max_bytes / 4 / max(per_row, 1))))
            for batch in reader.iter_batches(
                rows, row_groups=[group], use_threads=use_threads, columns=names
            ):
                yield pa.Table.from_batches([batch])


def read_ahead(tables: Generator[pa.Table]) -> Generator[pa.Table]:
    """The same tables, where each next table is read in the background while the caller works."""
    with closing(tables), ThreadPoolExecutor(1, thread_name_prefix="deltaward-read") as pool:
        following = pool.submit(next, tables, None)
        while (table := following.result()) is not None:
            following = pool.submit(next, tables, None)
            yield table


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Convert Arrow and I/O errors of a data file into an InvalidTableError that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InvalidTableError(
            f"The data file {path!r} cannot be read.",
            cause=str(error),
            fix="Check whether the file is damaged. The table is unchanged.",
        ) from error


def _read_small(store: LogStore, path: str, max_bytes: int, options: ReadOptions) -> pa.Table | None:
    """A file's rows as one table; None when the file is too large for this."""
    with readable(path), options.access.open_logged(path, store=store) as source:
        reader = _reader(source, options.dictionaries)
        if not _is_small(reader.metadata, max_bytes):
            return None
        _require_whole(reader.metadata)
        if options.opened is not None:
            options.opened(path, reader.metadata)
        return _checked(reader.read(use_threads=False, columns=_columns(reader, options)), reader.metadata)


def _require_whole(metadata: pq.FileMetaData) -> None:
    """Check that the footer lists all row groups. Arrow would read only the listed ones without an error."""
    rows = sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if rows != metadata.num_rows:
        raise pa.ArrowInvalid(
            f"The row groups have {rows} rows, but the footer records {metadata.num_rows} rows."
        )


def _checked(table: pa.Table, metadata: pq.FileMetaData) -> pa.Table:
    if table.num_columns and table.num_rows != metadata.num_rows:
        raise pa.ArrowInvalid(
            f"{table.num_rows} rows were read, but the footer records {metadata.num_rows} rows."
        )
    return table


def _is_small(metadata: pq.FileMetaData, max_bytes: int) -> bool:
    groups = metadata.num_row_groups
    size = sum(decoded_bytes(metadata, group) for group in range(groups))
    return groups <= 1 and size <= min(_WHOLE_FILE_BYTES, max_bytes)


def decoded_bytes(metadata: pq.FileMetaData, row_group: int) -> int:
    """The size of a row group in memory, as far as the footer shows.

    Nulls and repeated values take little space in a file, but their full width in memory. The footer does not
    record the lengths of strings in a dictionary.
    """
    group = metadata.row_group(row_group)
    total = 0
    for index in range(group.num_columns):
        column = group.column(index)
        width = _WIDTHS.get(column.physical_type, _OTHER_WIDTH)
        total += max(column.total_uncompressed_size, column.num_values * width)
    return total


def _reader(source: pa.NativeFile, dictionaries: Sequence[str]) -> pq.ParquetFile:
    return pq.ParquetFile(
        source,
        read_dictionary=list(dictionaries),
        coerce_int96_timestamp_unit="us",
        # Vacuum will delete the original files, so damage must be detected now.
        page_checksum_verification=True,
    )


def _columns(reader: pq.ParquetFile, options: ReadOptions) -> list[str] | None:
    names = None if options.columns is None else options.columns(reader.schema_arrow)
    # Reads all columns when none is selected, since Arrow needs a column to count rows.
    return list(names) if names else None
