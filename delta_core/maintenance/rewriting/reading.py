"""Reading data files whole, in the form in which their rows are written again."""

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
# Bytes a value takes in Arrow: texts at least an offset, decimals of whatever width sixteen.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "BYTE_ARRAY": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_OTHER_WIDTH = 16

OpenedFile: TypeAlias = "Callable[[str, pq.FileMetaData], None]"
"""Told of each file with its footer, before its first rows come, by the thread that reads them."""

ColumnsOfFile: TypeAlias = "Callable[[pa.Schema], Sequence[str] | None]"
"""From a file's schema to the columns of it that are read; None is all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What of files is read, and how.

    Attributes:
        dictionaries: string columns to read as dictionaries.
        columns: which columns; None is all of every file.
        opened: see `OpenedFile`.
        access: where besides the table the files may be.
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
    """The rows of files in order, with the file they are from; small files are read side by side.

    Args:
        store: the table's store.
        paths: as in the log.
        threads: how many files are read at a time.
        max_bytes: what all that is read ahead may take, decoded; also that of one table.
        options: what is read.

    Raises:
        MissingDataFileError: a file is not in the store.
        InvalidTableError: a file cannot be read.
        PathEscapeError: a file is neither in the table nor where the options allow.
    """
    if threads <= 1:
        for path in paths:
            for table in read_tables(store, path, max_bytes=max_bytes, options=options):
                yield path, table
        return
    # Many files a thread: each is a matter of milliseconds, less than a sleeping caller takes to wake.
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
    """A file's rows in order: at once, by row group, or in batches where a row group is too large.

    Args:
        store: the table's store.
        path: as in the log.
        max_bytes: row groups above this are read in batches.
        options: what is read.
        use_threads: decode columns side by side, in Arrow's threads.

    Raises:
        MissingDataFileError: the file is not in the store.
        InvalidTableError: the file cannot be read.
        PathEscapeError: it is neither in the table nor where the options allow.
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
    """The same tables, the next one being read while the caller works on this one."""
    with closing(tables), ThreadPoolExecutor(1, thread_name_prefix="deltaward-read") as pool:
        following = pool.submit(next, tables, None)
        while (table := following.result()) is not None:
            following = pool.submit(next, tables, None)
            yield table


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn a data file's failure into an error that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InvalidTableError(
            f"the data file {path!r} cannot be read",
            cause=str(error),
            fix="check whether the file is damaged; the table is unchanged",
        ) from error


def _read_small(store: LogStore, path: str, max_bytes: int, options: ReadOptions) -> pa.Table | None:
    """A file's rows at once; None when the file is too large for that."""
    with readable(path), options.access.open_logged(path, store=store) as source:
        reader = _reader(source, options.dictionaries)
        if not _is_small(reader.metadata, max_bytes):
            return None
        _require_whole(reader.metadata)
        if options.opened is not None:
            options.opened(path, reader.metadata)
        return _checked(reader.read(use_threads=False, columns=_columns(reader, options)), reader.metadata)


def _require_whole(metadata: pq.FileMetaData) -> None:
    """A footer that has lost a row group still says how many rows there were; Arrow would read the rest."""
    rows = sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if rows != metadata.num_rows:
        raise pa.ArrowInvalid(f"its row groups have {rows} rows, and its footer says {metadata.num_rows}")


def _checked(table: pa.Table, metadata: pq.FileMetaData) -> pa.Table:
    if table.num_columns and table.num_rows != metadata.num_rows:
        raise pa.ArrowInvalid(f"it gave {table.num_rows} rows, and its footer says {metadata.num_rows}")
    return table


def _is_small(metadata: pq.FileMetaData, max_bytes: int) -> bool:
    groups = metadata.num_row_groups
    size = sum(decoded_bytes(metadata, group) for group in range(groups))
    return groups <= 1 and size <= min(_WHOLE_FILE_BYTES, max_bytes)


def decoded_bytes(metadata: pq.FileMetaData, row_group: int) -> int:
    """What a row group takes in memory, as far as the footer tells.

    Nulls and repeated values take next to nothing in a file and their full width in memory. How long the
    texts behind a dictionary are is not known.
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
        # The originals will be deleted one day, so damage must not be copied unseen.
        page_checksum_verification=True,
    )


def _columns(reader: pq.ParquetFile, options: ReadOptions) -> list[str] | None:
    names = None if options.columns is None else options.columns(reader.schema_arrow)
    # Without any column Arrow would not say how many rows there are.
    return list(names) if names else None
