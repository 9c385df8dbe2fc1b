"""Keeps a writer from committing to a log that is no longer the one it read.

Log cleanup deletes old versions. A writer that slept past one would find its next version free, create
it, and be told of success, although no reader would ever get to that version. Where the table was
deleted and made anew meanwhile, the same commit would tear a hole into the new table's log, or put files
of the old table into it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from delta_core.clock import Clock
from delta_core.errors import ObjectNotFoundError, StaleCommitError, StorageError
from delta_core.log.log_path import LAST_CHECKPOINT_PATH, commit_path
from delta_core.storage.log_store import LogStore, ObjectInfo

VERIFY_AFTER_MS = 3_600_000
"""Knowledge of the tail older than this is verified after the write."""

LOOK_AFTER_MS = 1_000
"""When the log was last seen longer ago than this, the version that was read is looked up first."""


@dataclass(slots=True, kw_only=True)
class StaleWriterGuard:
    """Watches the age of what a transaction knows of the log's tail.

    The wall clock is used and not a monotonic one, since the latter may stand still while a machine
    sleeps.

    Attributes:
        known_at_ms: when the store last showed the tail.
        log_retention_ms: how long the table keeps log files.
        version_file: the commit of the version that was read, as it was then; None when not known.
    """

    store: LogStore
    clock: Clock
    known_at_ms: int
    log_retention_ms: int
    version_file: ObjectInfo | None = None

    @property
    def age_ms(self) -> int:
        """Milliseconds since the tail was last seen."""
        return self.clock.now_ms() - self.known_at_ms

    def tail_seen(self) -> None:
        """Note that the tail was just read from the store."""
        self.known_at_ms = self.clock.now_ms()
        self.version_file = None

    def before_put(self) -> StaleCommitError | None:
        """The reason not to write at all, or None. One request when the log was not seen for a second."""
        if self.age_ms > self.log_retention_ms / 2:
            return StaleCommitError(
                "The snapshot is too old to commit from.",
                cause=f"It was read {self.age_ms // 1000} seconds ago, more than half the log's retention.",
                fix="Reload the table and run the operation again.",
            )
        if self.version_file is None or self.age_ms <= LOOK_AFTER_MS:
            return None
        return log_replaced(self.store, self.version_file)

    def after_put(self, version: int) -> StaleCommitError | None:
        """The reason why a write that succeeded is nevertheless lost, or None.

        Two requests when the snapshot is more than an hour old, else none.
        """
        if version == 0 or self.age_ms <= VERIFY_AFTER_MS:
            return None
        try:
            self.store.head(commit_path(version - 1))
        except ObjectNotFoundError:
            return self._lost(f"Version {version - 1} is no longer in the log.")
        checkpoint = self._last_checkpoint_version()
        if checkpoint is not None and checkpoint >= version:
            return self._lost(f"The table already has a checkpoint of version {checkpoint}.")
        return None

    def _last_checkpoint_version(self) -> int | None:
        try:
            hint = json.loads(self.store.read(LAST_CHECKPOINT_PATH))
        except (StorageError, ValueError):
            return None
        version = hint.get("version") if isinstance(hint, dict) else None
        return version if isinstance(version, int) else None

    def _lost(self, cause: str) -> StaleCommitError:
        return StaleCommitError(
            "The commit was written below the log's tail, where no reader finds it.",
            cause=cause,
            fix="Reload the table and run the operation again.",
        )


def log_replaced(store: LogStore, version_file: ObjectInfo) -> StaleCommitError | None:
    """The reason why the log is not the one that a commit file was read from, or None. One request.

    A store that fails to answer gives none: whoever writes next learns of it.
    """
    try:
        if store.head(version_file.path) == version_file:
            return None
        cause = f"{version_file.path!r} is another file now."
    except ObjectNotFoundError:
        cause = f"{version_file.path!r} is no longer there."
    except StorageError:
        return None
    return StaleCommitError(
        "The table's log is not the one that was read.",
        cause=f"{cause} The table was deleted, replaced or cleaned up since.",
        fix="Open the table again, check that it is the one that is meant, and run the operation again.",
    )
