"""Carries the deletions of winning commits over to the files that a rewrite has written.

A compaction copies the rows of old files to new files. A winner that deletes some of these rows conflicts by
files, but not by rows: after the winner, the new files have the same rows, without those that the winner
deleted. So the rewrite keeps its files and gives them deletion vectors. The result is that of a rewrite after
the winner, so it is valid at every isolation level.

The winner may delete rows by a deletion vector, or remove a whole file together with its rows, as a statement
that copies the other rows to its own new files does. A winner that moved the rows without a change of data is
another rewrite, and remains a conflict. So does a winner that restored rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from delta_core.actions import (
    Action,
    AddFile,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
    RemoveFile,
)
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.deletion_vectors.file_update import (
    count_records,
    physical_records,
    removed,
    update_deletion_vector,
)
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.errors import DeltaError
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.commit_result import CommitResult, Committed
from delta_core.transaction.conflict_checker import RuleViolation
from delta_core.transaction.conflict_resolver import Resolution
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.winning_commit import WinningCommit

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRows:
    """Where a rewrite has put the live rows of one old file: into one new file, one after the other.

    Attributes:
        path: the old file, as in the log.
        target: the new file, as in the log.
        first_row: the position of the first row in the new file.
        count: the number of rows.
    """

    path: str
    target: str
    first_row: int
    count: int


class DeletionCarrier:
    """Settles conflicts of a rewrite with winners that delete rows of its old files.

    One resolver serves one transaction. The rewrite calls `discard` with the result when the transaction has
    ended.
    """

    def __init__(
        self,
        store: LogStore,
        moved: Iterable[MovedRows],
        *,
        properties: TableProperties | None = None,
        access: DataAccess = TABLE_ONLY,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create the resolver, without a request.

        Args:
            store: the table's store.
            moved: where the rows of each old file are.
            properties: the table's properties. They determine where deletion vector files are written.
            access: where files outside the table may be read.
            clock: gives the deletion timestamps of removed files.
        """
        self._store = store
        self._moved = {canonical_log_path(rows.path): rows for rows in moved}
        self._properties = properties
        self._access = access
        self._clock = clock
        self._written: list[DeletionVectorDescriptor] = []
        self._read_with: dict[str, DeletionVectorDescriptor | None] = {}
        self._carried: dict[str, Positions] = {}
        self._new_files: dict[str, AddFile] = {}
        self._last: Sequence[Action] | None = None

    def resolve(
        self,
        violation: RuleViolation,
        winner: WinningCommit,
        actions: Sequence[Action],
        *,
        transaction: CommitFootprint,
    ) -> Resolution | None:
        """See `ConflictResolver`.

        Requests: at most three deletion vectors are read for each disputed file, and one file is written for
        all new ones. When a read or write fails, the conflict stands.
        """
        if violation.rule != "delete_delete":
            return None
        try:
            resolution = self._settle(winner, actions)
        except DeltaError as error:
            _log.warning(
                "deletions could not be carried over", extra={"winner": winner.version, "error": str(error)}
            )
            return None
        if resolution is not None:
            self._last = resolution.actions
        return resolution

    def discard(self, result: CommitResult, owned: OwnedFiles) -> None:
        """Delete the files that no commit needs, once the transaction has ended.

        After a commit these are new files that lost all their rows, and deletion vectors that a later attempt
        replaced. After a failure that certainly committed nothing, these are all files.

        Args:
            result: the result of the transaction.
            owned: the files that the rewrite has written.
        """
        all_files = owned.with_deletion_vectors(self._written)
        if not isinstance(result, Committed):
            all_files.discard(result)
        elif self._last is not None and not result.already_applied:
            all_files.discard_deletion_vectors_not_in(self._last)
            live = {action.path for action in self._last if isinstance(action, AddFile)}
            unused = [add for path, add in self._new_files.items() if path not in live]
            OwnedFiles(store=self._store).with_data(unused).delete()

    def _settle(self, winner: WinningCommit, actions: Sequence[Action]) -> Resolution | None:
        if any(isinstance(action, Metadata | Protocol) for action in actions):
            return None  # The transaction changes more than files.
        own = {canonical_log_path(a.path): a for a in actions if isinstance(a, RemoveFile)}
        kept = {canonical_log_path(add.path): add for add in winner.adds}
        disputed = [remove for remove in winner.removes if canonical_log_path(remove.path) in own]
        removes: dict[str, RemoveFile | None] = {}
        carried: dict[str, list[Positions]] = {}
        for remove in disputed:
            key = canonical_log_path(remove.path)
            moved, live = self._moved.get(key), kept.get(key)
            if moved is None or _deletion_vector_id(own[key]) != _deletion_vector_id(remove):
                return None
            if live is None and not remove.data_change:
                return None  # Another rewrite has moved the rows.
            rows = self._newly_deleted(remove, live, moved)
            if rows is None:
                return None  # The winner restored rows.
            carried.setdefault(moved.target, []).append(moved.first_row + rows)
            removes[key] = (
                None
                if live is None
                else removed(live, deletion_timestamp_ms=self._clock.now_ms(), data_change=False)
            )
        adds = self._with_deletions(actions, carried)
        rebased: list[Action] = []
        for action in actions:
            new: Action | None = action
            if isinstance(action, RemoveFile):
                new = removes.get(canonical_log_path(action.path), action)
            elif isinstance(action, AddFile):
                new = adds.get(action.path, action)
            if new is not None:
                rebased.append(new)
        if not any(isinstance(action, AddFile) for action in rebased):
            return None  # The winner deleted every row, so there is nothing to rewrite any more.
        return Resolution(actions=rebased, rest=_without(winner, frozenset(removes)))

    def _newly_deleted(self, before: RemoveFile, after: AddFile | None, moved: MovedRows) -> Positions | None:
        """The rows that the winner deleted, counted among the rows that were live before.

        The rows that earlier winners deleted are still counted. None when the winner restored a row.
        """
        first = self._first_deletion_vector(before)
        count = moved.count + (0 if first is None else first.cardinality)
        original = self._positions(first, count)
        old = self._positions(before.deletion_vector, count)
        if after is None:
            every: Positions = np.arange(count, dtype=np.int64)
            new = np.setdiff1d(every, old, assume_unique=True)
        else:
            records = self._records(after)
            if records != count:
                return None
            now = self._positions(after.deletion_vector, count)
            new = np.setdiff1d(now, old, assume_unique=True)
            if len(new) != len(now) - len(old):
                return None
        # The rewrite left out the rows that were deleted when it read the file.
        ordinals: Positions = new - np.searchsorted(original, new)
        return ordinals

    def _first_deletion_vector(self, before: RemoveFile) -> DeletionVectorDescriptor | None:
        """The deletion vector that the old file had when the rewrite read it."""
        key = canonical_log_path(before.path)
        return self._read_with.setdefault(key, before.deletion_vector)

    def _with_deletions(
        self, actions: Sequence[Action], carried: Mapping[str, Sequence[Positions]]
    ) -> dict[str, AddFile | None]:
        """The new files with deletion vectors; None for a file that has no row left."""
        files: dict[str, AddFile | None] = {}
        partial: list[tuple[str, Positions, int]] = []
        for action in actions:
            if not isinstance(action, AddFile) or action.path not in carried:
                continue
            original = self._new_files.setdefault(action.path, action)
            count = self._records(original)
            known = self._carried.get(action.path)
            parts = [*carried[action.path], *(() if known is None else (known,))]
            positions: Positions = np.unique(np.concatenate(parts))
            self._carried[action.path] = positions
            if len(positions) == count:
                files[action.path] = None
            elif len(positions):
                partial.append((action.path, positions, count))
        dvs = write_deletion_vectors(
            self._store, (positions for _, positions, _ in partial), properties=self._properties
        )
        self._written += dvs.descriptors
        for (path, _, count), dv in zip(partial, dvs.descriptors, strict=True):
            update = update_deletion_vector(
                self._new_files[path],
                dv,
                deletion_timestamp_ms=self._clock.now_ms(),
                num_records=count,
                data_change=False,
            )
            files[path] = update.add
        return files

    def _records(self, file: AddFile) -> int:
        count = physical_records(file)
        return count_records(self._store, file, access=self._access) if count is None else count

    def _positions(self, dv: DeletionVectorDescriptor | None, records: int) -> Positions:
        if dv is None:
            return np.empty(0, np.int64)
        return read_deletion_vector(self._store, dv, num_rows=records, access=self._access)


def _without(winner: WinningCommit, settled: frozenset[str]) -> WinningCommit:
    info = winner.commit_info
    return replace(
        winner,
        # Without its removes the winner could be mistaken for a blind append.
        commit_info=None if info is None else replace(info, is_blind_append=False),
        adds=tuple(add for add in winner.adds if canonical_log_path(add.path) not in settled),
        removes=tuple(remove for remove in winner.removes if canonical_log_path(remove.path) not in settled),
    )


def _deletion_vector_id(file: RemoveFile) -> str | None:
    return None if file.deletion_vector is None else file.deletion_vector.unique_id
