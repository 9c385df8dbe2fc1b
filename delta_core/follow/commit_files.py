"""The files that a stream reads of one commit, and the commits that it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_core.actions import Action, AddCdcFile, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from delta_core.actions.json_codec import decode_commit
from delta_core.deletion_vectors.row_choice import RowChoice
from delta_core.errors import TableChangedError
from delta_core.follow.batch import StreamFile
from delta_core.follow.options import FollowOptions
from delta_core.follow.schema_change import StreamDefinition
from delta_core.log.commit_reader import CommitData
from delta_core.log.listing import CommitFile
from delta_core.scan.commit_changes import CHANGE_DATA_ENABLED, CommitChanges, stamp
from delta_core.snapshot.commit_time import in_commit_times_since
from delta_core.storage.log_store import LogStore
from delta_core.table_features.support import require_read_support


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOfCommit:
    """The files of a commit, and whether one batch must have all of them."""

    files: tuple[StreamFile, ...]
    is_atomic: bool = False


class CommitFiles:
    """Decides what a stream reads of each commit. The commits are passed in order."""

    def __init__(self, store: LogStore, definition: StreamDefinition, options: FollowOptions) -> None:
        """Create it for a stream of a table."""
        self._store = store
        self._definition = definition
        self._metadata = definition.metadata
        self._options = options
        self._changes = CommitChanges(store)
        self._last: tuple[CommitFile, FilesOfCommit] | None = None
        self._last_time = (-1, -1)

    def start_with(self, metadata: Metadata) -> None:
        """Set the metadata before the first commit, when it is not that of the definition."""
        self._metadata = metadata

    def of(self, file: CommitFile, commit: CommitData) -> FilesOfCommit:
        """The files of a commit. The result for the last commit is kept, as several batches may need it.

        Raises:
            TableChangedError: the commit removes or changes rows, and the options do not allow it; or the
                change feed was not enabled.
            StreamRestartRequiredError, StreamSchemaChangedError, StreamTableReplacedError: the commit changes
                the columns or the table.
            UnsupportedTableFeatureError: the commit adds a feature that this library cannot read.
            CorruptLogError: the commit is damaged.
        """
        if self._last is not None and self._last[0] == file:
            return self._last[1]
        version, actions = file.version, decode_commit(commit.data, path=commit.path)
        for action in actions:
            if isinstance(action, Metadata):
                self._definition.require_compatible(version, action)
                self._metadata = action
            elif isinstance(action, Protocol):
                require_read_support(
                    action,
                    self._metadata,
                    has_deletion_vectors=True,
                    through_scan=True,
                    operation=f"stream version {version}",
                )
        found = self._changed(file, actions) if self._options.change_feed else self._added(version, actions)
        self._last = (file, found)
        return found

    def _added(self, version: int, actions: Sequence[Action]) -> FilesOfCommit:
        added = [action for action in actions if isinstance(action, AddFile) and action.data_change]
        removed = [action for action in actions if isinstance(action, RemoveFile) and action.data_change]
        if removed:
            self._require_allowed(version, removed[0].path, actions, adds=bool(added))
            if self._options.skip_change_commits:
                return FilesOfCommit(files=())
        return FilesOfCommit(
            files=tuple(
                StreamFile(
                    version=version,
                    index=index,
                    path=add.path,
                    values=add.partition_values,
                    rows=RowChoice.left_by(add.deletion_vector),
                    stats=None if add.deletion_vector is None else add.stats,
                    size_bytes=add.size_bytes,
                )
                for index, add in enumerate(added)
            )
        )

    def _require_allowed(self, version: int, path: str, actions: Sequence[Action], *, adds: bool) -> None:
        options = self._options
        if options.ignore_changes or options.skip_change_commits or (options.ignore_deletes and not adds):
            return
        info = next((action for action in actions if isinstance(action, CommitInfo)), None)
        operation = f"by {info.operation}" if info is not None and info.operation else f"such as {path}"
        if adds:
            raise TableChangedError(
                f"Version {version} of {self._store.uri!r} changes rows, and a stream reads only new rows.",
                cause=f"The commit replaces files, {operation}.",
                fix="Set skipChangeCommits (skip_change_commits) to pass over such commits, ignoreChanges "
                "(ignore_changes) to read the new files with the rows that they copy, or the change feed.",
            )
        raise TableChangedError(
            f"Version {version} of {self._store.uri!r} deletes rows, and a stream reads only new rows.",
            cause=f"The commit removes files, {operation}.",
            fix="Set ignoreDeletes (ignore_deletes) to pass over such commits, or read the change feed.",
        )

    def _changed(self, file: CommitFile, actions: Sequence[Action]) -> FilesOfCommit:
        version, metadata = file.version, self._metadata
        if metadata.configuration.get(CHANGE_DATA_ENABLED, "").strip().lower() != "true":
            raise TableChangedError(
                f"The changes of version {version} of {self._store.uri!r} cannot be read.",
                cause=f"The table property {CHANGE_DATA_ENABLED} was not true then, and changes were not "
                "recorded.",
                fix="Set the property, and start the stream at a version after that.",
            )
        partitioned = bool(metadata.partition_columns) or any(isinstance(a, Metadata) for a in actions)
        stamped = stamp(version, self._time_ms(file, actions, metadata))
        found = tuple(
            StreamFile(
                version=version,
                index=index,
                path=changed.path,
                values={**changed.values, **stamped},
                rows=changed.rows,
                stats=changed.stats,
                size_bytes=changed.size_bytes,
            )
            for index, changed in enumerate(self._changes.files(version, actions, partitioned=partitioned))
        )
        # Of an update, one batch has the rows before and after.
        together = any(not item.rows.chooses_all for item in found) or any(
            isinstance(action, AddCdcFile) for action in actions
        )
        return FilesOfCommit(files=found, is_atomic=together)

    def _time_ms(self, file: CommitFile, actions: Sequence[Action], metadata: Metadata) -> int:
        since = in_commit_times_since(metadata)
        if since is not None and file.version >= since.version:
            info = next((action for action in actions if isinstance(action, CommitInfo)), None)
            if info is not None and info.in_commit_timestamp_ms is not None:
                return info.in_commit_timestamp_ms
        # Without in-commit timestamps, times grow strictly from commit to commit.
        before, before_ms = self._last_time
        own_ms = file.info.modified_ms
        time_ms = max(own_ms, before_ms + 1) if before == file.version - 1 else own_ms
        self._last_time = (file.version, time_ms)
        return time_ms
