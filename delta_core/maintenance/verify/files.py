"""The files that the checks examine, and their rows as a reader of the table sees them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.errors import DeltaError, ObjectNotFoundError, PathEscapeError, RowTrackingDisabledError
from delta_core.maintenance.rewriting.parity import parity_of, recorded_parity
from delta_core.maintenance.verify.row_hash import RowHash, hash_batches
from delta_core.scan.record_batches import FileReader, RowsOfFile
from delta_core.scan.row_tracking import ROW_TRACKING_COLUMNS, FileRowTracking, RowTrackingReader
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.table_features.row_tracking import RowTracking

_BATCH_ROWS = 65_536
_COLUMNS = ["path", "partition_values", "size_bytes", "stats", "deletion_vector"]
_NUMBERS = ["base_row_id", "default_row_commit_version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFile:
    """A data file as in the log.

    Attributes:
        path: as in the log.
        parity: parity of the file's bytes, if its writer recorded one; see `rewriting.parity`.
        deletion_vector: marks the deleted rows.
        base_row_id, default_row_commit_version: as in the log.
    """

    path: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    size_bytes: int | None = None
    stats: str | None = None
    parity: str | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    @classmethod
    def of(cls, action: AddFile | RemoveFile) -> LoggedFile:
        """The file of an action."""
        return cls(
            path=action.path,
            partition_values=dict(action.partition_values or ()),
            size_bytes=action.size_bytes,
            stats=action.stats,
            parity=recorded_parity(action.tags) if isinstance(action, AddFile) else None,
            deletion_vector=action.deletion_vector,
            base_row_id=action.base_row_id,
            default_row_commit_version=action.default_row_commit_version,
        )

    @property
    def key(self) -> tuple[str, DeletionVectorDescriptor | None]:
        """Path and deletion vector: together they identify the rows of the file in a version."""
        return self.path, self.deletion_vector

    @property
    def num_records(self) -> int | None:
        """The number of rows in the statistics, including deleted rows; None when they do not record it."""
        try:
            count = json.loads(self.stats or "{}").get("numRecords")
        except (ValueError, AttributeError):
            return None
        return count if isinstance(count, int) and not isinstance(count, bool) else None


def live_files(snapshot: Snapshot) -> list[LoggedFile]:
    """The live files of a version, with statistics."""
    table = snapshot.files.to_table([*_COLUMNS, *_NUMBERS])
    return [
        LoggedFile(
            **{
                **row,
                "partition_values": dict(row["partition_values"] or ()),
                "deletion_vector": None
                if row["deletion_vector"] is None
                else DeletionVectorDescriptor(**row["deletion_vector"]),
            }
        )
        for row in table.to_pylist()
    ]


class RowsOfFiles:
    """Hashes the rows of files by the schema of one version, with deletion vectors and column mapping.

    If the table has row tracking, the hash includes row ids and row commit versions.

    Args:
        snapshot: the version whose schema and partition columns are used.
        access: the roots that files may be in.
    """

    def __init__(self, snapshot: Snapshot, access: DataAccess) -> None:
        snapshot.require_readable(operation="verify the table", through_scan=True)
        tracking = _tracking(snapshot)
        self._store = snapshot.store
        self._access = access
        self._reader = FileReader(
            schema=snapshot.schema,
            partition_columns=snapshot.partition_columns,
            batch_rows=_BATCH_ROWS,
            mapping=snapshot.column_mapping,
            row_tracking=tracking,
            access=access,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the hashed columns."""
        return tuple(self._reader.arrow_schema.names)

    def hash(self, files: Iterable[LoggedFile], names: Iterable[str]) -> RowHash:
        """The hash of all rows of the files, over some columns. Reads each file completely.

        Raises:
            MissingDataFileError: a file is missing.
            InvalidTableError: a file cannot be read, or a page does not match its checksum.
            PathEscapeError: a file is outside the table and the allowed roots.
        """
        return hash_batches(self._batches(files), names)

    def _batches(self, files: Iterable[LoggedFile]) -> Iterator[pa.RecordBatch]:
        for file in files:
            place = self._access.locate(file.path, store=self._store)
            yield from self._reader.read(
                place.store,
                place.path,
                file.partition_values,
                deleted=self._deleted(file),
                numbers=FileRowTracking(
                    base_row_id=file.base_row_id, default_row_commit_version=file.default_row_commit_version
                ),
            )

    def _deleted(self, file: LoggedFile) -> RowsOfFile | None:
        dv = file.deletion_vector
        if dv is None:
            return None
        return lambda num_rows: read_deletion_vector(self._store, dv, num_rows=num_rows, access=self._access)


def size_problem(file: LoggedFile, *, store: LogStore, access: DataAccess) -> str | None:
    """A description of a problem with a file's location or size; None without one. Costs one request."""
    try:
        place = access.locate(file.path, store=store)
        size_bytes = place.store.head(place.path).size_bytes
    except PathEscapeError:
        return f"{file.path} (outside the table and the allowed roots)"
    except ObjectNotFoundError:
        return f"{file.path} (missing)"
    if file.size_bytes is not None and size_bytes != file.size_bytes:
        return f"{file.path} ({size_bytes} bytes instead of {file.size_bytes})"
    return None


def byte_problem(file: LoggedFile, *, store: LogStore, access: DataAccess) -> str | None:
    """A description of a change of a file's bytes; None without a change or without a recorded parity.

    Reads a file with a recorded parity completely.

    Raises:
        StorageError: the store does not respond; a later attempt may succeed.
    """
    if file.parity is None:
        return None
    try:
        with access.open_logged(file.path, store=store) as source:
            parity = parity_of(source)
    except (DeltaError, pa.ArrowException, OSError) as error:
        _raise_if_retryable(error)
        return f"{file.path} (unreadable: {error})"
    return None if parity == file.parity else f"{file.path} (its bytes have changed since it was written)"


def footer_problem(file: LoggedFile, *, store: LogStore, access: DataAccess) -> str | None:
    """A description of different row counts in a footer and in the statistics; None without a difference.

    Raises:
        StorageError: the store does not respond; a later attempt may succeed.
    """
    try:
        with access.open_logged(file.path, store=store) as source:
            num_rows = pq.read_metadata(source).num_rows
    except (DeltaError, pa.ArrowException, OSError) as error:
        _raise_if_retryable(error)
        return f"{file.path} (unreadable: {error})"
    if file.num_records is not None and file.num_records != num_rows:
        return f"{file.path} ({num_rows} rows, but the statistics record {file.num_records})"
    return None


def _raise_if_retryable(error: Exception) -> None:
    """Raise a temporary error of the store, which is not a problem of the file: the check is retried."""
    if isinstance(error, DeltaError) and error.retryable:
        raise error


def _tracking(snapshot: Snapshot) -> RowTrackingReader | None:
    try:
        tracking = RowTracking.of(snapshot.protocol, snapshot.metadata, operation="verify row ids")
    except RowTrackingDisabledError:
        return None
    if any(snapshot.schema.find(name) is not None for name in ROW_TRACKING_COLUMNS):
        return None
    return RowTrackingReader(tracking, ROW_TRACKING_COLUMNS)
