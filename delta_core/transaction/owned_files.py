"""The files that an operation has written, and their end when its commit does not happen.

What a commit *adds* and what its operation *wrote* are two things: a deletion vector, an assignment of row
ids and a refresh of statistics add a file once more that has been part of the table all along. So ownership
is said where a file is written and never read off the staged actions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import unquote

from delta_core.actions import Action, AddCdcFile, AddFile, DeletionVectorDescriptor
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.errors import CommitError, DeltaError
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import resolve_data_path
from delta_core.transaction.commit_result import CommitResult, may_discard_files

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedFiles:
    """Files that one operation has created, and that nothing but its commit will name.

    Attributes:
        store: the table's store.
        paths: of data files and files of change data, as in the log.
        vectors: deletion vectors whose files were written; inline ones have none.
    """

    store: LogStore
    paths: tuple[str, ...] = ()
    dvs: tuple[DeletionVectorDescriptor, ...] = ()

    def with_data(self, adds: Iterable[AddFile]) -> Self:
        """These, and data files that the operation has written.

        Raises:
            CommitError: an `add` has a deletion vector or row ids already, as no file that was just written
                has: it names a file that may be part of the table.
        """
        written = tuple(adds)
        for add in written:
            if add.deletion_vector is not None or add.base_row_id is not None:
                raise CommitError(
                    f"The file {add.path!r} is no file that this operation has written.",
                    cause="It comes with "
                    + ("row ids." if add.deletion_vector is None else "a deletion vector."),
                    fix="Name only files that were just written as owned: others could be deleted although "
                    "the table needs them.",
                )
        return replace(self, paths=(*self.paths, *(add.path for add in written)))

    def with_changes(self, files: Iterable[AddCdcFile]) -> Self:
        """These, and files of change data that the operation has written."""
        return replace(self, paths=(*self.paths, *(file.path for file in files)))

    def with_deletion_vectors(self, dvs: Iterable[DeletionVectorDescriptor]) -> Self:
        """These, and the files of deletion vectors that the operation has written; several may share one."""
        return replace(self, dvs=(*self.dvs, *dvs))

    def discard(self, result: CommitResult) -> int:
        """Delete the files when the result proves that no commit names them.

        After `Committed`, `AlreadyApplied` and `Unknown`, and where an object in the log names the files,
        nothing is deleted. A file that cannot be deleted stays as an orphan for vacuum; that is logged and is
        no error. One request for each file.

        Args:
            result: what became of the commit. An error before anything was sent to the log is a `Rejected`.

        Returns:
            How many files were deleted.
        """
        if not may_discard_files(result):
            return 0
        return self._delete(self._store_paths())

    def discard_deletion_vectors_not_in(self, actions: Iterable[Action]) -> int:
        """Delete the files of vectors that a commit which has landed does not name, and return how many.

        For vectors that an attempt wrote and a later one replaced; errors as `discard`.

        Args:
            actions: of that commit.
        """
        named = replace(
            self,
            paths=(),
            dvs=tuple(
                action.deletion_vector
                for action in actions
                if isinstance(action, AddFile) and action.deletion_vector is not None
            ),
        )
        kept = {path for _, path in named._store_paths()}
        written = replace(self, paths=())
        return self._delete(pair for pair in written._store_paths() if pair[1] not in kept)

    def _delete(self, files: Iterable[tuple[str, str]]) -> int:
        deleted = 0
        done: set[str] = set()
        for name, path in files:
            if path in done:
                continue
            done.add(path)
            try:
                self.store.delete(path)
                deleted += 1
            except DeltaError as error:
                _left_behind(name, error)
        return deleted

    def _store_paths(self) -> Iterator[tuple[str, str]]:
        """Each file's name, for messages, and its path in the store; without those outside the table."""
        for name in self.paths:
            try:
                yield unquote(name), resolve_data_path(name, root_uri=self.store.uri)
            except DeltaError as error:
                _left_behind(unquote(name), error)
        for dv in self.dvs:
            try:
                path = deletion_vector_path(dv, root_uri=self.store.uri)
            except (DeltaError, ValueError) as error:
                _left_behind(dv.path_or_inline_dv, error)
                continue
            if path is not None:
                yield path, path


def _left_behind(name: str, error: Exception) -> None:
    _log.warning("written file left behind", extra={"path": name, "error": str(error)})
