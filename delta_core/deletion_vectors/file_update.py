"""The actions of a file that loses rows and is not written again.

The file is removed with its old vector and added with the new one, in one commit: at most one action of
each kind for a path (PROTOCOL.md, "Action Reconciliation"). A file with a vector must say how many rows it
has, deleted ones included, and that its bounds may be wider than its live rows (PROTOCOL.md, "Per-file
Statistics").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from delta_core.errors import InvalidTableError
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.parquet_footer import MalformedFooter, check_data_file


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUpdate:
    """A change of one file's vector.

    Attributes:
        remove: the file as it was.
        add: the file as it is now; None when no row is left.
    """

    remove: RemoveFile
    add: AddFile | None


def with_new_deletion_vector(
    file: AddFile,
    dv: DeletionVectorDescriptor,
    *,
    deletion_timestamp_ms: int,
    num_records: int | None = None,
    data_change: bool = True,
) -> FileUpdate:
    """A live file with another vector.

    Everything else stays: partition values, size, modification time, tags, the numbers of its rows and
    what clustered it. Of its statistics `numRecords` is set, `tightBounds` becomes false, and the rest is
    kept as it is written: bounds of more rows are bounds of these too.

    Args:
        file: as it is live.
        vector: with all deleted rows, those of the old vector included.
        deletion_timestamp_ms: when the file as it was stopped being part of the table.
        num_records: rows of the data file, deleted ones included, as `count_records` gives them; None when
            the file's statistics say it.
        data_change: False when the rows are only moved.

    Raises:
        InvalidTableError: nobody says how many rows the file has, two say it differently, the vector deletes
            more, all or no rows, or it is the vector that the file has.
    """
    said = physical_records(file)
    count = said if num_records is None else num_records
    if count is None:
        raise _refused(
            file,
            "nobody says how many rows it has",
            "Take the number from its footer (count_records) and pass it",
        )
    if said is not None and said != count:
        raise _refused(
            file, f"its statistics say {said} rows, its footer {count}", "Write the file's statistics again"
        )
    if not 0 < dv.cardinality < count:
        raise _refused(
            file,
            f"the vector deletes {dv.cardinality} of its {count} rows",
            "Remove a file without rows, and leave one alone that loses none",
        )
    old = file.deletion_vector
    if old is not None and old.unique_id == dv.unique_id:
        raise _refused(file, "it is the vector that the file has", "Leave the file as it is")
    if old is not None and old.cardinality >= dv.cardinality:
        raise _refused(
            file,
            f"it deletes {dv.cardinality} rows, and {old.cardinality} are deleted already",
            "Unite the new rows with those of the file's vector",
        )
    added = replace(
        file, deletion_vector=dv, stats=wide_statistics(file.stats, count), data_change=data_change
    )
    return FileUpdate(
        remove=removed(file, deletion_timestamp_ms=deletion_timestamp_ms, data_change=data_change), add=added
    )


def without_rows(file: AddFile, *, deletion_timestamp_ms: int) -> FileUpdate:
    """A live file that has lost its last row: it is removed, and needs no vector."""
    return FileUpdate(remove=removed(file, deletion_timestamp_ms=deletion_timestamp_ms), add=None)


def removed(file: AddFile, *, deletion_timestamp_ms: int, data_change: bool = True) -> RemoveFile:
    """The tombstone of a live file, with all that the file said of itself."""
    return RemoveFile(
        path=file.path,
        deletion_timestamp_ms=deletion_timestamp_ms,
        data_change=data_change,
        extended_file_metadata=True,
        partition_values=file.partition_values,
        size_bytes=file.size_bytes,
        stats=file.stats,
        tags=file.tags,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )


def physical_records(file: AddFile) -> int | None:
    """The rows of the data file, deleted ones included, as its statistics say; None when they do not."""
    count = _fields(file.stats).get("numRecords")
    number = json.loads(count) if count is not None else None
    # What is negative or no integer (True is one to Python) is no number of rows.
    return number if type(number) is int and number >= 0 else None


def count_records(store: LogStore, file: AddFile, *, access: DataAccess = TABLE_ONLY) -> int:
    """The rows of the data file, deleted ones included, from its footer. Two or three small reads.

    Raises:
        MissingDataFileError: the file is not in the store.
        InvalidTableError: it is not Parquet.
        PathEscapeError: it is outside the table.
    """
    place = access.locate(file.path, store=store)
    with access.open(place.store, place.path) as source:
        try:
            check_data_file(source)
            source.seek(0)
            return int(pq.read_metadata(source).num_rows)
        except (MalformedFooter, pa.ArrowException, OSError) as error:
            raise InvalidTableError(
                f"The data file {file.path} cannot be read",
                cause=str(error),
                fix="Restore the file from a backup, or repair the table",
            ) from error


def wide_statistics(stats: str | None, num_records: int) -> str:
    """Statistics of a file that a vector takes rows from: what is kept is kept letter by letter.

    Statistics that are no JSON object are left out. A number read and written again could lose digits, and
    then a bound would leave out a row.
    """
    fields = {**_fields(stats), "numRecords": str(num_records), "tightBounds": "false"}
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items()) + "}"


def _fields(stats: str | None) -> dict[str, str]:
    """The fields of statistics, each as it is written; none when they are no JSON object."""
    if stats is None:
        return {}
    try:
        return dict(_members(stats))
    except (ValueError, RecursionError):
        return {}


def _members(text: str) -> Iterator[tuple[str, str]]:
    decoder = json.JSONDecoder()
    if not isinstance(decoder.decode(text), dict):
        return
    # It is an object, so what stands between names and values can only be what JSON puts there.
    at = _skip(text, 0, "{")
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        at = _skip(text, at, ":")
        _, end = decoder.raw_decode(text, at)
        yield name, text[at:end]
        at = _skip(text, end, ",")


def _skip(text: str, at: int, mark: str) -> int:
    while text[at] in " \t\r\n" + mark:
        at += 1
    return at


def _refused(file: AddFile, cause: str, fix: str) -> InvalidTableError:
    return InvalidTableError(f"The file {file.path} gets no deletion vector", cause=cause, fix=fix)
