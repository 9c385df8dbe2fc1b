"""Keeps a writer from committing to a log that is no longer the one it read.

Log cleanup deletes old versions. A writer that slept past one would find its next version free, create
it, and be told of success, although no reader would ever get to that version. Where the table was
deleted and made anew meanwhile, the same commit would tear a hole into the new table's log, or put files
of the old table into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta_core.actions import Action
from delta_core.clock import Clock
from delta_core.errors import ObjectNotFoundError, StaleCommitError, StorageError
from delta_core.log.listing import list_log
from delta_core.log.log_path import commit_path
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.transaction.staged_files import StagedFiles

VERIFY_AFTER_MS = 10_000
"""Knowledge of the tail older than this is verified after the write; a quarter of the retention if less."""

_YOUNG_MS = 600_000
"""Nobody is refused for its age alone before; where logs are kept for less, each commit is looked up."""

LOOK_AFTER_MS = 100
"""A commit that saw the log longer ago than this looks up the version before, ahead of the next attempt."""

CREATE_AFTER_MS = 1_000
"""A commit that creates the table looks for one first, when it found none longer ago than this."""

_LOOK_PAUSES_SECONDS = (0.1, 0.3, 1.0)


class _VersionGoneError(StaleCommitError):
    """The version before is no longer in the log, for whatever reason."""


@dataclass(slots=True, kw_only=True)
class LogTailGuard:
    """Watches the age of what a transaction knows of the log's tail.

    The wall clock is used and not a monotonic one, since the latter may stand still while a machine
    sleeps.

    Attributes:
        known_at_ms: when the store last showed the tail.
        log_retention_ms: how long the table keeps log files.
        version_file: the commit of the version that was read, as it was then; None when not known.
        last_winner: or the path and the bytes of the last commit that others made since.
        staged: the files to be committed; None when there are none.
        creates: version 0 is to be written, of a table that was not there.
        has_version_0: the last look found that it is there, so whoever creates the table has nothing to send.
        is_blind: nobody has looked whether the version is in the log already, so each write is verified.
    """

    store: LogStore
    clock: Clock
    known_at_ms: int
    log_retention_ms: int
    version_file: ObjectInfo | None = None
    last_winner: tuple[str, bytes] | None = None
    staged: StagedFiles | None = None
    creates: bool = False
    is_blind: bool = False
    has_version_0: bool = False
    _seen_here_ms: int | None = None
    """When this commit saw the log itself: what a handle read before may be another table's by now."""

    @property
    def age_ms(self) -> int:
        """Milliseconds since the tail was last seen."""
        return self.clock.now_ms() - self.known_at_ms

    def go_on_as(self, actions: Sequence[Action]) -> None:
        """Note that other actions are to be committed, which may name other files."""
        if self.staged is not None:
            self.staged.go_on_as(actions)

    def tail_seen(self, at_ms: int) -> None:
        """Note when the tail was read, of a log that has turned out to be the one known before."""
        self.known_at_ms = self._seen_here_ms = at_ms

    def winner_seen(self, path: str, data: bytes, *, at_ms: int) -> None:
        """Note the newest commit, which another writer made, and when it was read."""
        self.last_winner = (path, data)
        self.known_at_ms = self._seen_here_ms = at_ms

    def look(self) -> StaleCommitError | None:
        """The reason not to write, nor to go on beside others' commits, or None.

        One request before the first attempt, and before each that comes a tenth of a second after the log
        was seen; none for a table that is created, within a second. One more for each staged file when they
        are as old as files that a vacuum deletes.

        Raises:
            StorageError: the store does not answer.
        """
        if self.age_ms > max(self.log_retention_ms / 2, _YOUNG_MS):
            return StaleCommitError(
                "The snapshot is too old to commit from.",
                cause=f"It was read {self.age_ms // 1000} seconds ago, more than half the log's retention.",
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
        """Whether the log was seen so lately that it need not be looked at again."""
        if self.is_blind:
            return False
        # A clock that was set back tells no age.
        if self.creates and self.last_winner is None:
            return 0 <= self.age_ms <= CREATE_AFTER_MS
        return self._seen_here_ms is not None and 0 <= now_ms - self._seen_here_ms <= LOOK_AFTER_MS

    def _replaced(self) -> StaleCommitError | None:
        """The reason why the version before is not the one that was seen, or None, also when unknown."""
        if self.last_winner is not None:
            path, data = self.last_winner
            return _other_log(self.clock, path, lambda: self.store.read(path) == data)
        if self.version_file is not None:
            return log_replaced(self.store, self.version_file, clock=self.clock)
        return self._outlived() if self.creates else None

    def _outlived(self) -> StaleCommitError | None:
        """The reason why the table that is to be created has been there long, or None. One listing.

        Where version 0 was cleaned up it is free again, and what is written there would be read by whoever
        asks for the table as it was at first.
        """
        listing = list_log(self.store, from_version=0)
        versions = [commit.version for commit in listing.commits]
        later = [*versions, *(item.version for item in listing.checkpoints)]
        self.has_version_0 = 0 in versions
        if not later or self.has_version_0:
            return None  # who owns version 0 is for the committer to find out
        return StaleCommitError(
            "There is a table already.",
            cause=f"Its log has version {max(later)}, and version 0 was cleaned up.",
            fix="Open the table, or choose another location.",
        )

    def after_put(self, version: int) -> StaleCommitError | None:
        """The reason why a write that succeeded is nevertheless lost, or None.

        Cleanup deletes from the oldest version on, so while the version before this one is there, this one
        has not been there before. Without it the store's times decide: commits and checkpoints that build on
        this commit are newer than it; those that another commit of this version was read for are older.

        No request when the tail was seen ten seconds ago or less. Else one, for the version before as it was
        seen; when it is not known one listing, and two more requests when that does not show it.

        Raises:
            StorageError: the store does not answer, or its times do not tell.
        """
        if not self.is_blind and 0 <= self.age_ms <= min(VERIFY_AFTER_MS, self.log_retention_ms / 4):
            return None
        if self.last_winner is not None or self.version_file is not None:
            replaced = self._replaced()
            if replaced is None:
                return None
            if not isinstance(replaced, _VersionGoneError):
                self._require_other_content()
                return self._lost(f"It is in another table's log: {replaced.cause}")
        listing = list_log(self.store, from_version=max(0, version - 1))
        modified_ms = {commit.version: commit.info.modified_ms for commit in listing.commits}
        if version not in modified_ms:
            raise StorageError(f"The listing does not show version {version}, which was just written.")
        # Where listings lag, one may lack a version that is there, and have one that is gone.
        is_listed = version - 1 in modified_ms and self.store.consistent_listing
        if is_listed or self._is_there(version - 1):
            return None
        checkpoints = [item for item in listing.checkpoints if item.version >= version]
        later_ms = [time for number, time in modified_ms.items() if number > version]
        later_ms += [part.modified_ms for item in checkpoints for part in item.parts]
        own_ms = self._written_ms(version)
        if any(time < own_ms for time in later_ms):
            return self._lost(f"Version {version} was in the log before, and others have built on it.")
        if any(time == own_ms for time in later_ms):
            raise StorageError(f"What follows version {version} was written at the same time as it.")
        if version and not later_ms and not any(item.version == version - 1 for item in listing.checkpoints):
            if not self.store.consistent_listing:
                raise StorageError(f"Whether version {version - 1} is still in the log cannot be told.")
            return self._lost(f"Version {version - 1} is no longer in the log.")
        return None

    def _require_other_content(self) -> None:
        """Raise StorageError where the version before may be the one that was read, written once more.

        A log that was copied back, or into another class of storage, has the same bytes under other times.
        The commit then landed where every reader finds it, and who was told that it is lost would append the
        same rows again. A winner's bytes have been compared; of the version that was read the size is known.
        """
        known = None if self.last_winner is not None else self.version_file
        if known is not None and self.store.head(known.path).size_bytes == known.size_bytes:
            raise StorageError(f"{known.path!r} was written again, perhaps as it was.")

    def _written_ms(self, version: int) -> int:
        """When this version was written; a listing that lags may have the time of another one."""
        try:
            return self.store.head(commit_path(version)).modified_ms
        except ObjectNotFoundError as error:
            raise StorageError(f"Version {version}, which was just written, is gone.") from error

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
            "The commit was written to a place where no reader of the table that was read finds it.",
            cause=cause,
            fix="Reload the table and run the operation again. Where the table was replaced, its new log may "
            "have a stray version by now.",
        )


def log_replaced(store: LogStore, version_file: ObjectInfo, *, clock: Clock) -> StaleCommitError | None:
    """The reason why the log is not the one that a commit file was read from, or None. One request.

    Raises:
        StorageError: the store does not answer, asked several times.
    """
    path = version_file.path
    return _other_log(clock, path, lambda: store.head(path) == version_file)


def _other_log(clock: Clock, path: str, is_same: Callable[[], bool]) -> StaleCommitError | None:
    try:
        if _asked(is_same, clock):
            return None
        kind, cause = StaleCommitError, f"{path!r} is another file now. The table was replaced since."
    except ObjectNotFoundError:
        kind = _VersionGoneError
        cause = f"{path!r} is no longer there. The table was deleted, replaced or cleaned up since."
    return kind(
        "The table's log is not the one that was read.",
        cause=cause,
        fix="Open the table again, check that it is the one that is meant, and run the operation again.",
    )


def _asked(question: Callable[[], bool], clock: Clock) -> bool:
    for pause_seconds in _LOOK_PAUSES_SECONDS:
        try:
            return question()
        except ObjectNotFoundError:
            raise
        except StorageError:
            clock.sleep(pause_seconds)
    return question()
