"""The files with the changed rows of one commit (PROTOCOL.md, "Add CDC File", "Change Data Files")."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from delta_core.actions import Action, AddCdcFile, AddFile, RemoveFile
from delta_core.deletion_vectors.row_choice import ALL_ROWS, RowChoice
from delta_core.errors import CorruptLogError, SchemaError, TableChangedError
from delta_core.log.log_path import commit_path
from delta_core.replay.live_files import matching_rows, path_spellings
from delta_core.schema.types import LONG, STRING, TIMESTAMP, StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import canonical_log_path

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"

CHANGE_COLUMNS = (
    StructField(name=CHANGE_TYPE, data_type=STRING),
    StructField(name=COMMIT_VERSION, data_type=LONG),
    StructField(name=COMMIT_TIMESTAMP, data_type=TIMESTAMP),
)
"""The columns that describe a change; they follow the table's columns."""

CHANGE_DATA_ENABLED = "delta.enableChangeDataFeed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """The changed rows of one file.

    Attributes:
        path: as in the log.
        values: the columns that are constant in the file, by physical name, serialised as partition values:
            those of its partition, and of CHANGE_COLUMNS those that the file does not contain.
        rows: the changed rows.
        stats: the statistics of the file in the log, if there are any.
        size_bytes: the size of the file; None if the log does not have it.
    """

    path: str
    values: Mapping[str, str | None]
    rows: RowChoice = ALL_ROWS
    stats: str | None = None
    size_bytes: int | None = None


class CommitChanges:
    """The files with changed rows of a table's commits, one commit at a time."""

    def __init__(self, store: LogStore) -> None:
        """Create it for the table of a store."""
        self._store = store
        self._previous: Snapshot | None = None

    def files(self, version: int, actions: Sequence[Action], *, partitioned: bool) -> Iterator[ChangedFile]:
        """The changed files of one commit, in the order of its removed and then of its added files.

        Args:
            version: the version of the commit.
            actions: its actions.
            partitioned: whether removed files may have been partitioned.

        Raises:
            TableChangedError: a removed file has no recorded partition.
        """
        changes = [action for action in actions if isinstance(action, AddCdcFile)]
        if changes:
            for file in changes:
                yield ChangedFile(path=file.path, values=file.partition_values, size_bytes=file.size_bytes)
            return
        adds = {canonical_log_path(a.path): a for a in actions if isinstance(a, AddFile) and a.data_change}
        removes = [a for a in actions if isinstance(a, RemoveFile) and a.data_change]
        paired: set[str] = set()
        for remove in removes:
            key = canonical_log_path(remove.path)
            add = adds.get(key)
            values = self._partition_values(version, remove) if partitioned else remove.partition_values or {}
            before = RowChoice.left_by(remove.deletion_vector)
            if add is None:
                yield _changed(remove, values, "delete", before)
                continue
            paired.add(key)
            # Only the deletion vector was replaced.
            old, new = remove.deletion_vector, add.deletion_vector
            for kind, listed, unlisted in (("delete", new, old), ("insert", old, new)):
                rows = RowChoice(listed=listed, unlisted=unlisted, keeps_listed=True)
                yield _changed(add, values, kind, rows)
        for key, add in adds.items():
            if key not in paired:
                rows = RowChoice.left_by(add.deletion_vector)
                yield _changed(add, add.partition_values, "insert", rows)

    def _partition_values(self, version: int, remove: RemoveFile) -> Mapping[str, str | None]:
        """The partition values of a removed file; read from the version before when the `remove` has none."""
        if remove.partition_values:
            return remove.partition_values
        if self._previous is None or self._previous.version != version - 1:
            # Cached: when one remove of a commit lacks its values, all of them do.
            self._previous = Snapshot.load(self._store, version=version - 1)
        if not self._previous.partition_columns:
            return {}
        path = canonical_log_path(remove.path)
        for batch in self._previous.files.batches(["path", "partition_values"]):
            rows, _ = matching_rows(
                batch.column("path"), lambda: None, {(path, "")}, path_spellings([(path, "")])
            )
            if len(rows):
                return dict(batch.column("partition_values")[int(rows[0])].as_py() or ())
        raise TableChangedError(
            f"Version {version} of {self._store.uri!r} does not record the partition it changed.",
            cause=f"The file {remove.path!r} has no partition values, and is not in the version before.",
            fix="Compare the rows of the two versions instead.",
        )


def stamp(version: int, timestamp_ms: int) -> Mapping[str, str]:
    """A version's number and time as constants of its files.

    Raises:
        CorruptLogError: the time is out of range.
    """
    return {COMMIT_VERSION: str(version), COMMIT_TIMESTAMP: _date_string(version, timestamp_ms)}


def _changed(
    file: AddFile | RemoveFile, values: Mapping[str, str | None], change: str, rows: RowChoice
) -> ChangedFile:
    return ChangedFile(
        path=file.path,
        values={**values, CHANGE_TYPE: change},
        rows=rows,
        stats=file.stats,
        size_bytes=file.size_bytes,
    )


def require_no_change_columns(snapshot: Snapshot) -> None:
    """Refuse a table with a column of a reserved name: its values would collide with the change columns."""
    reserved = {field.name.casefold() for field in CHANGE_COLUMNS}
    for field in snapshot.schema:
        if reserved.isdisjoint(
            (field.name.casefold(), snapshot.column_mapping.physical_name(field).casefold())
        ):
            continue
        raise SchemaError(
            f"The changes of {snapshot.store.uri!r} cannot be read.",
            cause=f"The name of its column {field.name} is reserved for change data.",
            fix="Rewrite the table with another name for the column, or compare the rows of two versions.",
        )


def _date_string(version: int, timestamp_ms: int) -> str:
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=timestamp_ms)
    except OverflowError as error:
        raise CorruptLogError(
            f"The timestamp of the commit {commit_path(version)!r} is out of range.",
            cause=f"It is {timestamp_ms} milliseconds after 1970.",
            fix="Choose versions without this commit, or restore the log from a backup.",
        ) from error
    return moment.isoformat(sep=" ")
