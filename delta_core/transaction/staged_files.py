"""Files that were written long ago and that no version names yet: a vacuum takes them for left-overs."""

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
"""What other engines' vacuums keep, whatever the table says."""

_YOUNG_MS = 600_000


@dataclass(slots=True, kw_only=True)
class StagedFiles:
    """The files that a commit is about to add.

    Attributes:
        paths: as in the log; of the files of vectors, too.
        since_ms: none of them was written before.
        retention_ms: how long the table keeps files that no version names.
    """

    store: LogStore
    clock: Clock
    paths: tuple[str, ...]
    since_ms: int
    retention_ms: int

    def go_on_as(self, actions: Iterable[Action]) -> None:
        """The same commit with other actions, which name other files."""
        self.paths = staged_paths(actions, root_uri=self.store.uri)

    def missing(self) -> StaleCommitError | None:
        """The reason not to commit: one of them is gone. None while all are too young to be deleted.

        No request while they are young, else one for each; files outside the table's root are nobody's to
        delete.

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
                    f"The file {path!r} is no longer there.",
                    cause=f"The write began {age_ms // 1000} seconds ago, and a vacuum deletes files that no "
                    "version names after their retention.",
                    fix="Run the operation again; raise delta.deletedFileRetentionDuration for writes that "
                    "take so long.",
                )
        return None


def staged_paths(actions: Iterable[Action], *, root_uri: str) -> tuple[str, ...]:
    """The files that `add` actions name, of rows and of deleted ones, each once and as in the log."""
    found: dict[str, None] = {}
    for action in actions:
        if not isinstance(action, AddFile):
            continue
        found[action.path] = None
        if action.deletion_vector is None:
            continue
        try:
            path = deletion_vector_path(action.deletion_vector, root_uri=root_uri)
        except (DeltaError, ValueError):
            continue  # It is outside the table, where nobody deletes it.
        if path is not None:
            found[quote(path)] = None
    return tuple(found)
