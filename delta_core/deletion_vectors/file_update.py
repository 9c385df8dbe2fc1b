"""The actions for a file that gets a new deletion vector.

The file is removed with its old deletion vector and added with the new one, in one commit: at most one action
of each kind for a path (PROTOCOL.md, "Action Reconciliation"). The statistics of a file with a deletion
vector must contain the number of rows, including deleted rows, and must state that bounds may be wider than
the live rows (PROTOCOL.md, "Per-file Statistics"). A file has one deletion vector at a time, so the new one
must contain the rows of the old one (`unite`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from delta_core.deletion_vectors.encode import row_positions
from delta_core.deletion_vectors.roaring import Positions
from delta_core.errors import InvalidTableError
from delta_core.parquet.footer import MalformedFooter, check_data_file
from delta_core.storage.data_access import TABLE_ONLY, DataAccess, ObjectLocation
from delta_core.storage.log_store import LogStore


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUpdate:
    """A change of one file's deletion vector.

    Attributes:
        remove: the file before the change.
        add: the file after the change; None when no row is left.
    """

    remove: RemoveFile
    add: AddFile | None


def update_deletion_vector(
    file: AddFile,
    dv: DeletionVectorDescriptor,
    *,
    deletion_timestamp_ms: int,
    num_records: int | None = None,
    data_change: bool = True,
) -> FileUpdate:
    """The actions that replace a live file's deletion vector.

    All other fields stay: partition values, size, modification time, tags, row ids and clustering provider.
    In the statistics `numRecords` is set and `tightBounds` becomes false. The other statistics are kept
    unchanged, since bounds of all rows are also bounds of the remaining rows.

    Args:
        file: the live file.
        dv: the new deletion vector with all deleted rows, including those of the old deletion vector.
        deletion_timestamp_ms: the deletion time for the `remove` action.
        num_records: the number of rows of the data file, including deleted rows, as `count_records` returns
            it; None takes it from the file's statistics.
        data_change: False when the rows are only moved.

    Raises:
        InvalidTableError: the number of rows is unknown or contradictory; or the deletion vector deletes no
            rows, all rows or more; or the file has this deletion vector already.
    """
    recorded = physical_records(file)
    count = recorded if num_records is None else num_records
    if count is None:
        raise _refused(
            file,
            "The log records no row count for the file.",
            "Read the row count from the file's footer with count_records, and pass it.",
        )
    if recorded is not None and recorded != count:
        raise _refused(
            file,
            f"Its statistics record {recorded} rows, its footer {count}.",
            "Write the file's statistics again.",
        )
    if not 0 < dv.cardinality < count:
        raise _refused(
            file,
            f"The deletion vector deletes {dv.cardinality} of its {count} rows.",
            "Remove a file that has no row left, and do not change a file that loses no row.",
        )
    old = file.deletion_vector
    if old is not None and old.unique_id == dv.unique_id:
        raise _refused(file, "The file has this deletion vector already.", "Do not change the file.")
    if old is not None and old.cardinality >= dv.cardinality:
        raise _refused(
            file,
            f"The new deletion vector deletes {dv.cardinality} rows, the old one {old.cardinality}.",
            "Unite the new rows with the rows of the file's deletion vector.",
        )
    added = replace(
        file, deletion_vector=dv, stats=wide_statistics(file.stats, count), data_change=data_change
    )
    return FileUpdate(
        remove=removed(file, deletion_timestamp_ms=deletion_timestamp_ms, data_change=data_change), add=added
    )


def removed(file: AddFile, *, deletion_timestamp_ms: int, data_change: bool = True) -> RemoveFile:
    """The `remove` action of a live file, with all fields of its `add`."""
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
    """The number of rows of the data file from its statistics, including deleted rows; None if unknown."""
    return records_in_statistics(file.stats)


def records_in_statistics(stats: str | None) -> int | None:
    """The number of rows in the statistics of a file; None if unknown."""
    count = _fields(stats).get("numRecords")
    number = json.loads(count) if count is not None else None
    # Negative numbers and other types are invalid. The check is exact, since bool is a subclass of int.
    return number if type(number) is int and number >= 0 else None


def count_records(store: LogStore, file: AddFile, *, access: DataAccess = TABLE_ONLY) -> int:
    """The number of rows of the data file, including deleted rows, from its footer; see `rows_in_footer`."""
    return rows_in_footer(access.locate(file.path, store=store), access=access)


def rows_in_footer(place: ObjectLocation, *, access: DataAccess = TABLE_ONLY) -> int:
    """The number of rows of a data file, including deleted rows, from its footer.

    Two or three small reads.

    Raises:
        MissingDataFileError: the file is not in the store.
        InvalidTableError: the file is not Parquet.
        PathEscapeError: the file is outside the table.
    """
    with access.open(place.store, place.path) as source:
        try:
            check_data_file(source)
            source.seek(0)
            return int(pq.read_metadata(source).num_rows)
        except (MalformedFooter, pa.ArrowException, OSError) as error:
            raise InvalidTableError(
                f"The data file {place.path} cannot be read.",
                cause=f"Its footer is invalid: {error}.",
                fix="Restore the file from a backup, or repair the table.",
            ) from error


def wide_statistics(stats: str | None, num_records: int) -> str:
    """The statistics of a file with a deletion vector: `numRecords` is set, and `tightBounds` is false.

    The JSON of all other fields is copied unchanged. Decoding and encoding a number could lose digits, and
    then a bound could exclude a row. Statistics that are not a JSON object are dropped.
    """
    fields = {**_fields(stats), "numRecords": str(num_records), "tightBounds": "false"}
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items()) + "}"


class DeletedRows(Protocol):
    """The deleted rows of one file after a change. An engine may keep them in any form.

    Attributes:
        positions: the positions of all deleted rows, ascending. May read the old deletion vector.
        newly_deleted: the positions of deleted rows that were live before, ascending.
        num_records: the number of rows of the data file, including deleted rows.
        num_deleted: the number of `positions`.
        num_newly_deleted: the number of `newly_deleted`.
    """

    @property
    def positions(self) -> Positions: ...

    @property
    def newly_deleted(self) -> Positions: ...

    @property
    def num_records(self) -> int: ...

    @property
    def num_deleted(self) -> int: ...

    @property
    def num_newly_deleted(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeletionVectorUnion:
    """The deleted rows of one file after a change.

    Attributes:
        positions: the positions of all deleted rows, ascending.
        newly_deleted: the positions of deleted rows that were live before, ascending.
        num_records: the number of rows of the data file, including deleted rows.
    """

    positions: Positions
    newly_deleted: Positions
    num_records: int

    @property
    def is_unchanged(self) -> bool:
        """True when no live row is deleted, so the file needs no new deletion vector."""
        return not len(self.newly_deleted)

    @property
    def num_deleted(self) -> int:
        """The number of deleted rows."""
        return len(self.positions)

    @property
    def num_newly_deleted(self) -> int:
        """The number of deleted rows that were live before."""
        return len(self.newly_deleted)

    @property
    def deletes_all(self) -> bool:
        """True when the file has no live row left, so it is removed and not added again."""
        return len(self.positions) == self.num_records


def unite(known: Positions, deleted: npt.ArrayLike, *, num_records: int) -> DeletionVectorUnion:
    """The union of rows that are deleted already and rows to delete.

    Args:
        known: the deleted rows, ascending and distinct, as `read_deletion_vector` returns them.
        deleted: the rows to delete; see `row_positions`.
        num_records: the number of rows of the data file.

    Raises:
        InvalidTableError: a row is not in the file, so the recorded number of rows is wrong.
        ConfigurationError: `deleted` does not contain valid positions.
    """
    added = row_positions(deleted)
    for positions in (known, added):
        if len(positions) and int(positions[-1]) >= num_records:
            raise InvalidTableError(
                f"Row {int(positions[-1])} of a data file cannot be deleted.",
                cause=f"The file has {num_records} rows, counted from 0.",
                fix="Compare numRecords in the file's statistics with its footer, and repair the statistics.",
            )
    if not len(known):
        return DeletionVectorUnion(positions=added, newly_deleted=added, num_records=num_records)
    # Both are sorted: a search for each added row costs less than sorting all rows again.
    places = np.searchsorted(known, added)
    is_new = known[np.minimum(places, len(known) - 1)] != added
    newly_deleted = added[is_new]
    return DeletionVectorUnion(
        positions=np.insert(known, places[is_new], newly_deleted),
        newly_deleted=newly_deleted,
        num_records=num_records,
    )


def _fields(stats: str | None) -> dict[str, str]:
    """The fields of statistics with their unparsed JSON; empty when they are not a JSON object."""
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
    # It is a valid JSON object, so only white space and JSON punctuation separate names and values.
    position = _skip(text, 0, "{")
    while text[position] != "}":
        name, position = decoder.raw_decode(text, position)
        position = _skip(text, position, ":")
        _, end = decoder.raw_decode(text, position)
        yield name, text[position:end]
        position = _skip(text, end, ",")


def _skip(text: str, position: int, mark: str) -> int:
    while text[position] in " \t\r\n" + mark:
        position += 1
    return position


def _refused(file: AddFile, cause: str, fix: str) -> InvalidTableError:
    return InvalidTableError(f"The file {file.path} cannot get the deletion vector.", cause=cause, fix=fix)
