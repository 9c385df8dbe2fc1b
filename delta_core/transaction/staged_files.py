"""Checks that files to be committed still exist: a vacuum deletes old files that no version refers to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from delta_core.actions import Action, AddFile
from delta_core.clock import Clock
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.errors import DeltaError, ObjectNotFoundError, PathEscapeError, StaleCommitError
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import resolve_data_path

_DEFAULT_RETENTION_MS = 7 * 86_400_000
"""The retention that vacuums of other engines may use instead of the table's."""

_YOUNG_MS = 600_000


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
        if age_ms <= max(min(self.retention_ms, _DEFAULT_RETENTION_MS), _YOUNG_MS):
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
