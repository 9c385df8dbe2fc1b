"""Keeps a writer from committing to a log that is no longer the log that it read.

Log cleanup deletes old versions. A writer that paused during a cleanup could find its next version free and
create it successfully, although no reader would ever read that version. Where the table was deleted and
created again during the pause, the same commit would leave a gap in the new table's log, or add files of the
old table to it. A vacuum deletes old files that no version refers to, so after a pause the files of the
commit are checked, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from delta_core.actions import Action, AddFile
from delta_core.clock import Clock
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.errors import DeltaError, ObjectNotFoundError, PathEscapeError, StaleCommitError, StorageError
from delta_core.log.listing import list_log
from delta_core.log.log_path import commit_path
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.storage.uri import resolve_data_path

VERIFY_AFTER_MS = 10_000
"""When the log's tail was read longer ago than this, the write is verified afterwards.

The limit is a quarter of the log retention when that is less.
"""

_YOUNG_MS = 600_000
"""A snapshot younger than this is never refused for its age alone, even with a shorter log retention."""

RECHECK_AFTER_MS = 100
"""When the log was read longer ago than this, the previous version is checked before the next attempt."""

CREATE_AFTER_MS = 1_000
"""When no table was found longer ago than this, a commit that creates one checks again before its write."""

_CHECK_PAUSES_SECONDS = (0.1, 0.3, 1.0)


class _VersionMissingError(StaleCommitError):
    """The previous version is no longer in the log, for any reason."""


@dataclass(slots=True, kw_only=True)
class LogTailGuard:
    """Checks that a transaction's view of the log's tail is recent enough, and that the log is the same.

    It uses the wall clock, because a monotonic clock may stop while a machine sleeps.

    Attributes:
        store: the table's store.
        clock: the source of time.
        verified_at_ms: when the log's tail was last read.
        log_retention_ms: how long the table keeps log files.
        version_file: the commit file of the version that was read, as it was then; None when not known.
        last_winner: path and bytes of the newest winning commit. It then replaces `version_file`.
        staged: the files to be committed, or None.
        creates: the commit writes version 0 of a table that did not exist.
        has_version_0: the last check found version 0 in the log, so a commit that creates the table must not
            be sent.
        is_blind: the caller did not check whether the table exists, so each write is verified.
    """

    store: LogStore
    clock: Clock
    verified_at_ms: int
    log_retention_ms: int
    version_file: ObjectInfo | None = None
    last_winner: tuple[str, bytes] | None = None
    staged: StagedFiles | None = None
    creates: bool = False
    is_blind: bool = False
    has_version_0: bool = False
    _seen_here_ms: int | None = None
    """When this commit read the log itself. A handle's earlier read may be of a table replaced since."""

    @property
    def age_ms(self) -> int:
        """Milliseconds since the log's tail was last read."""
        return self.clock.now_ms() - self.verified_at_ms

    def replace_actions(self, actions: Sequence[Action]) -> None:
        """Record that `actions` will be committed instead of the earlier ones. They may name other files."""
        if self.staged is not None:
            self.staged.replace_actions(actions)

    def tail_seen(self, at_ms: int) -> None:
        """Record when the tail was read, after a check that the log is the same as before."""
        self.verified_at_ms = self._seen_here_ms = at_ms

    def winner_seen(self, path: str, data: bytes, *, at_ms: int) -> None:
        """Record the newest winning commit and when it was read."""
        self.last_winner = (path, data)
        self.verified_at_ms = self._seen_here_ms = at_ms

    def check(self) -> StaleCommitError | None:
        """The error that forbids the next write or rebase, or None.

        One request before the first attempt, and before each attempt that starts more than 0.1 seconds after
        the log was read. A commit that creates a table makes none within one second. There is one more
        request for each staged file when the files are old enough for a vacuum to delete them.

        Raises:
            StorageError: the store does not answer.
        """
        if self.age_ms > max(self.log_retention_ms / 2, _YOUNG_MS):
            return StaleCommitError(
                "The snapshot is too old to commit from.",
                cause=f"It was read {self.age_ms // 1000} seconds ago, which is more than half the log "
                "retention.",
                fix="Reload the table and run the operation again.",
            )
        began_ms = self.clock.now_ms()
        if not self._is_fresh(began_ms):
            replaced = self._replaced()
            if replaced is not None:
                return replaced
            self._seen_here_ms = began_ms
        return None if self.staged is None else self.staged.missing()

    def _is_fresh(self, now_ms: int) -> bool:
        """Whether the log was read so recently that no check is needed."""
        if self.is_blind:
            return False
        # After a clock was set back, the age is not known.
        if self.creates and self.last_winner is None:
            return 0 <= self.age_ms <= CREATE_AFTER_MS
        return self._seen_here_ms is not None and 0 <= now_ms - self._seen_here_ms <= RECHECK_AFTER_MS

    def _replaced(self) -> StaleCommitError | None:
        """The error when the previous version is not the one that was read; None when it is, or unknown."""
        if self.last_winner is not None:
            path, data = self.last_winner
            return _other_log(self.clock, path, lambda: self.store.read(path) == data)
        if self.version_file is not None:
            return log_replaced(self.store, self.version_file, clock=self.clock)
        return self._outlived() if self.creates else None

    def _outlived(self) -> StaleCommitError | None:
        """The error when the table to be created already exists without version 0, or None. One listing.

        After log cleanup deleted version 0 its name is free again. Readers of the table's first version would
        read a commit that is written there.
        """
        listing = list_log(self.store, from_version=0)
        versions = [commit.version for commit in listing.commits]
        later = [*versions, *(item.version for item in listing.checkpoints)]
        self.has_version_0 = 0 in versions
        if not later or self.has_version_0:
            return None  # the committer determines which writer created version 0
        return StaleCommitError(
            "The table already exists.",
            cause=f"Its log has version {max(later)}, and version 0 was cleaned up.",
            fix="Open the table, or choose another location.",
        )

    def after_put(self, version: int) -> StaleCommitError | None:
        """The error when a successful write is nevertheless lost, or None.

        Log cleanup deletes the oldest versions first. So while the previous version exists, this version
        cannot have existed and been deleted before. When the previous version is missing, the store's file
        times decide: commits and checkpoints that build on this commit are newer than it, and those that
        build on an earlier commit of the same version are older.

        No request when the tail was read at most ten seconds ago. Otherwise one request for the previous
        version. When that is not known, one listing, and two more requests when the listing lacks it.

        Raises:
            StorageError: the store does not answer, or its file times do not decide.
        """
        if not self.is_blind and 0 <= self.age_ms <= min(VERIFY_AFTER_MS, self.log_retention_ms / 4):
            return None
        if self.last_winner is not None or self.version_file is not None:
            replaced = self._replaced()
            if replaced is None:
                return None
            if not isinstance(replaced, _VersionMissingError):
                self._require_other_content()
                return self._lost(f"The commit is in another table's log. {replaced.cause}")
        listing = list_log(self.store, from_version=max(0, version - 1))
        modified_ms = {commit.version: commit.info.modified_ms for commit in listing.commits}
        if version not in modified_ms:
            raise StorageError(f"The listing does not contain version {version}, which was just written.")
        # A listing that lags may lack a version that exists, and contain one that was deleted.
        is_listed = version - 1 in modified_ms and self.store.consistent_listing
        if is_listed or self._is_there(version - 1):
            return None
        checkpoints = [item for item in listing.checkpoints if item.version >= version]
        later_ms = [time for number, time in modified_ms.items() if number > version]
        later_ms += [part.modified_ms for item in checkpoints for part in item.parts]
        own_ms = self._written_ms(version)
        if any(time < own_ms for time in later_ms):
            return self._lost(f"Version {version} existed before, and later versions build on that one.")
        if any(time == own_ms for time in later_ms):
            raise StorageError(f"A file that follows version {version} has the same time as that version.")
        if version and not later_ms and not any(item.version == version - 1 for item in listing.checkpoints):
            if not self.store.consistent_listing:
                raise StorageError(f"It is not known whether version {version - 1} is still in the log.")
            return self._lost(f"Version {version - 1} is no longer in the log.")
        return None

    def _require_other_content(self) -> None:
        """Raise StorageError where the previous version may have been rewritten with the same contents.

        A log that was restored from a copy, or moved to another storage class, has the same bytes with other
        file times. Then the commit landed in the right log. A caller that took it for lost would append the
        same rows again. A winner's bytes were already compared. Of the version that was read only the size
        is known.
        """
        known = None if self.last_winner is not None else self.version_file
        if known is not None and self.store.head(known.path).size_bytes == known.size_bytes:
            raise StorageError(f"{known.path!r} was written again, perhaps with the same contents.")

    def _written_ms(self, version: int) -> int:
        """When this version was written. A listing that lags may contain the time of an earlier file."""
        try:
            return self.store.head(commit_path(version)).modified_ms
        except ObjectNotFoundError as error:
            raise StorageError(f"Version {version}, which was just written, is missing.") from error

    def _is_there(self, version: int) -> bool:
        if version < 0:
            return False
        try:
            self.store.head(commit_path(version))
        except ObjectNotFoundError:
            return False
        return True

    def _lost(self, cause: str) -> StaleCommitError:
        return StaleCommitError(
            "The commit was written where no reader of the table finds it.",
            cause=cause,
            fix="Reload the table and run the operation again. Where the table was replaced, check its new "
            "log for this stray version.",
        )


def log_replaced(store: LogStore, version_file: ObjectInfo, *, clock: Clock) -> StaleCommitError | None:
    """The error when the log is not the one that a commit file was read from, or None. One request.

    Raises:
        StorageError: the store does not answer after several attempts.
    """
    path = version_file.path
    return _other_log(clock, path, lambda: store.head(path) == version_file)


_DEFAULT_RETENTION_MS = 7 * 86_400_000
"""The retention that vacuums of other engines may use instead of the table's."""

_MIN_CHECKED_AGE_MS = 600_000


@dataclass(slots=True, kw_only=True)
class StagedFiles:
    """The files that a commit is about to add.

    Attributes:
        store: the table's store.
        clock: the source of time.
        paths: the paths as in the log, including those of deletion vector files.
        since_ms: no file was written before this time.
        retention_ms: how long the table keeps files that no version refers to.
    """

    store: LogStore
    clock: Clock
    paths: tuple[str, ...]
    since_ms: int
    retention_ms: int

    def replace_actions(self, actions: Iterable[Action]) -> None:
        """Check the files of `actions` from now on, which the commit has instead of the earlier actions."""
        self.paths = staged_paths(actions, root_uri=self.store.uri)

    def missing(self) -> StaleCommitError | None:
        """The error that a file is missing, or None. No file is checked while all are too young for a vacuum.

        No request while the files are young, else one for each file. Files outside the table's root are not
        checked, because no vacuum of the table deletes them.

        Raises:
            StorageError: the store does not answer.
        """
        age_ms = self.clock.now_ms() - self.since_ms
        if age_ms <= max(min(self.retention_ms, _DEFAULT_RETENTION_MS), _MIN_CHECKED_AGE_MS):
            return None
        for path in self.paths:
            try:
                self.store.head(resolve_data_path(path, root_uri=self.store.uri))
            except PathEscapeError:
                continue
            except ObjectNotFoundError:
                return StaleCommitError(
                    f"The file {path!r} no longer exists.",
                    cause=f"The write began {age_ms // 1000} seconds ago. A vacuum deletes files that no "
                    "version refers to after the retention.",
                    fix="Run the operation again. For writes that take this long, raise "
                    "delta.deletedFileRetentionDuration.",
                )
        return None


def staged_paths(actions: Iterable[Action], *, root_uri: str) -> tuple[str, ...]:
    """The paths of data files and deletion vector files that `add` actions name, each once, as in the log."""
    paths: dict[str, None] = {}
    for action in actions:
        if not isinstance(action, AddFile):
            continue
        paths[action.path] = None
        if action.deletion_vector is None:
            continue
        try:
            path = deletion_vector_path(action.deletion_vector, root_uri=root_uri)
        except (DeltaError, ValueError):
            continue  # The file is outside the table, where no vacuum of the table deletes it.
        if path is not None:
            paths[quote(path)] = None
    return tuple(paths)


def _other_log(clock: Clock, path: str, is_same: Callable[[], bool]) -> StaleCommitError | None:
    try:
        if _retried(is_same, clock):
            return None
        kind, cause = StaleCommitError, f"{path!r} is now another file. The table was replaced since."
    except ObjectNotFoundError:
        kind = _VersionMissingError
        cause = f"{path!r} no longer exists. The table was deleted, replaced or cleaned up since."
    return kind(
        "The table's log is not the one that was read.",
        cause=cause,
        fix="Open the table again, check that it is the intended one, and run the operation again.",
    )


def _retried(check: Callable[[], bool], clock: Clock) -> bool:
    for pause_seconds in _CHECK_PAUSES_SECONDS:
        try:
            return check()
        except ObjectNotFoundError:
            raise
        except StorageError:
            clock.sleep(pause_seconds)
    return check()
