"""Reading data files whole, in the form in which their rows are written again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.errors import InvalidTableError, MissingDataFileError, ObjectNotFoundError
from delta_core.schema.conversion import convert_chunked, floor_to_microseconds
from delta_core.storage.log_store import LogStore

_WHOLE_FILE_BYTES = 64 << 20
_LARGEST_BATCH_ROWS = 1 << 16
_SMALLEST_BATCH_ROWS = 1 << 8


def read_tables(
    store: LogStore,
    path: str,
    *,
    max_bytes: int,
    dictionaries: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """A file's rows in order: at once, by row group, or in batches where a row group is too large.

    Args:
        store: the table's store.
        path: relative to the table root and decoded.
        max_bytes: row groups above this are read in batches.
        dictionaries: string columns to read as dictionaries.
        columns: names as the file spells them or not (case is ignored); None is all. A name that the
            file lacks is left out.

    Raises:
        MissingDataFileError: the file is not in the store.
        InvalidTableError: the file cannot be read.
    """
    with readable(path), store.open_input(path) as source:
        reader = pq.ParquetFile(
            source,
            read_dictionary=list(dictionaries),
            coerce_int96_timestamp_unit="us",
            # The originals will be deleted one day, so damage must not be copied unseen.
            page_checksum_verification=True,
        )
        names = None if columns is None else _present(reader.schema_arrow.names, columns)
        metadata = reader.metadata
        groups = range(metadata.num_row_groups)
        sizes = [metadata.row_group(group).total_byte_size for group in groups]
        if sum(sizes) <= min(_WHOLE_FILE_BYTES, max_bytes) and len(sizes) <= 1:
            yield reader.read(use_threads=False, columns=names)
            return
        for group in groups:
            if sizes[group] <= max_bytes:
                yield reader.read_row_group(group, use_threads=False, columns=names)
                continue
            per_row = sizes[group] / max(1, metadata.row_group(group).num_rows)
            rows = min(_LARGEST_BATCH_ROWS, max(_SMALLEST_BATCH_ROWS, int(max_bytes / 4 / max(per_row, 1))))
            for batch in reader.iter_batches(rows, row_groups=[group], use_threads=False, columns=names):
                yield pa.Table.from_batches([batch])


def fit(table: pa.Table, target: pa.Schema) -> pa.Table:
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


def read_ahead(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same tables, the next one being read while the caller works on this one."""
    with ThreadPoolExecutor(1, thread_name_prefix="deltaward-read") as pool:
        following = pool.submit(next, tables, None)
        while (table := following.result()) is not None:
            following = pool.submit(next, tables, None)
            yield table


@contextmanager
def readable(path: str) -> Iterator[None]:
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


def _present(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    folded = {name.casefold() for name in wanted}
    return [name for name in names if name.casefold() in folded]


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
