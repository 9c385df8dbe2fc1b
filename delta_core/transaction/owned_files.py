"""The files that an operation has written, and their deletion when its commit fails.

The files that a commit *adds* are not always files that its operation *wrote*: a new deletion vector, an
assignment of row ids and a refresh of statistics add a live file again. So an operation records ownership
where it writes a file. Ownership is never derived from the staged actions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    """Files that one operation has created, and that only its commit will refer to.

    Attributes:
        store: the table's store.
        paths: the paths of data files and change data files, as in the log.
        dvs: the deletion vectors whose files were written; inline ones have no file.
    """

    store: LogStore
    paths: tuple[str, ...] = ()
    dvs: tuple[DeletionVectorDescriptor, ...] = ()

    def with_data(self, adds: Iterable[AddFile]) -> Self:
        """These files plus data files that the operation has written.

        Raises:
            CommitError: an `add` already has a deletion vector or row ids. A file that was just written has
                neither, so the `add` may name a live file of the table.
        """
        written = tuple(adds)
        for add in written:
            if add.deletion_vector is not None or add.base_row_id is not None:
                raise CommitError(
                    f"The file {add.path!r} was not written by this operation.",
                    cause="It already has "
                    + ("row ids." if add.deletion_vector is None else "a deletion vector."),
                    fix="Pass only files that were just written. Other files could be deleted although the "
                    "table needs them.",
                )
        return replace(self, paths=(*self.paths, *(add.path for add in written)))

    def with_changes(self, files: Iterable[AddCdcFile]) -> Self:
        """These files plus change data files that the operation has written."""
        return replace(self, paths=(*self.paths, *(file.path for file in files)))

    def with_deletion_vectors(self, dvs: Iterable[DeletionVectorDescriptor]) -> Self:
        """These files plus deletion vector files that the operation has written. Several may share a file."""
        return replace(self, dvs=(*self.dvs, *dvs))

    @contextmanager
    def deleted_on_error(self, kind: type[BaseException] = DeltaError) -> Iterator[None]:
        """Delete the files when the block raises an error of a kind. In it, nothing may be sent to the log.

        Errors of the deletion are handled as in `delete`.
        """
        try:
            yield
        except kind:
            self.delete()
            raise

    def delete(self) -> int:
        """Delete the files of an operation that has sent nothing to the log, so that no commit names them.

        A file that cannot be deleted remains as an orphan file for vacuum. That is logged and raises no
        error. One request for each file.

        Returns:
            The number of deleted files.
        """
        return self._delete(self._store_paths())

    def discard(self, result: CommitResult) -> int:
        """Delete the files when the result proves that no commit refers to them.

        After `Committed`, `AlreadyApplied` and `Unknown`, and where an object in the log names the files,
        nothing is deleted. Errors are handled as in `delete`.

        Args:
            result: the outcome of the commit.

        Returns:
            The number of deleted files.
        """
        if not may_discard_files(result):
            return 0
        return self.delete()

    def discard_deletion_vectors_not_in(self, actions: Iterable[Action]) -> int:
        """Delete the deletion vector files that a committed transaction does not refer to.

        They were written for an attempt and replaced by a later one. Errors are handled as in `discard`.

        Args:
            actions: the actions of the commit.

        Returns:
            The number of deleted files.
        """
        referenced = replace(
            self,
            paths=(),
            dvs=tuple(
                action.deletion_vector
                for action in actions
                if isinstance(action, AddFile) and action.deletion_vector is not None
            ),
        )
        referenced_paths = {path for _, path in referenced._store_paths()}
        written = replace(self, paths=())
        return self._delete(pair for pair in written._store_paths() if pair[1] not in referenced_paths)

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
        """The name of each file, for messages, and its path in the store. Skips files outside the table."""
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
    _log.warning("orphan file could not be deleted", extra={"path": name, "error": str(error)})
