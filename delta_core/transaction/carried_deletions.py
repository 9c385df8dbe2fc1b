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
from collections.abc import Mapping, Sequence

import numpy as np

from delta_core.actions import (
    Action,
    AddCdcFile,
    AddFile,
    Metadata,
    RemoveFile,
)
from delta_core.actions import Protocol as Protocol_
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.deletion_vectors.file_update import (
    removed,
    update_deletion_vector,
)
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
from delta_core.transaction.row_map import OldFile, OldRows, RowMap
from delta_core.transaction.row_resolver import RowResolver, deletion_vector_id, without_files
from delta_core.transaction.winning_commit import WinningCommit

_log = logging.getLogger(__name__)


class DeletionCarrier(RowResolver):
    """Settles conflicts of a rewrite with winners that delete rows of its old files."""

    def __init__(
        self,
        store: LogStore,
        rows: RowMap,
        *,
        properties: TableProperties | None = None,
        access: DataAccess = TABLE_ONLY,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create the resolver, without a request.

        Args:
            store: the table's store.
            rows: where the rows of the old files are.
            properties, access, clock: see `RowResolver`.
        """
        super().__init__(store, properties=properties, access=access, clock=clock)
        self._rows = rows
        self._old_files: dict[str, OldFile] = {}
        self._carried: dict[str, Positions] = {}
        self._new_files: dict[str, AddFile] = {}

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
        """See `RowResolver`. A new file that lost all its rows is deleted after a commit, too."""
        super().discard(result, owned)
        if isinstance(result, Committed) and self._last is not None and not result.already_applied:
            live = {action.path for action in self._last if isinstance(action, AddFile)}
            unused = [add for path, add in self._new_files.items() if path not in live]
            OwnedFiles(store=self._store).with_data(unused).delete()

    def _settle(self, winner: WinningCommit, actions: Sequence[Action]) -> Resolution | None:
        if any(isinstance(action, Metadata | Protocol_ | AddCdcFile) for action in actions):
            return None  # The transaction changes more than files.
        own = {canonical_log_path(a.path): a for a in actions if isinstance(a, RemoveFile)}
        kept = {canonical_log_path(add.path): add for add in winner.adds}
        for action in actions:
            if isinstance(action, AddFile):
                self._new_files.setdefault(action.path, action)
        removes: dict[str, RemoveFile | None] = {}
        deleted: list[OldRows] = []
        for remove in winner.removes:
            key = canonical_log_path(remove.path)
            if key not in own:
                continue
            live = kept.get(key)
            if deletion_vector_id(own[key]) != deletion_vector_id(remove):
                return None
            if live is None and not remove.data_change:
                return None  # Another rewrite has moved the rows.
            rows = self._deleted_rows(own[key], live)
            if rows is None:
                return None
            deleted.append(rows)
            removes[key] = (
                None
                if live is None
                else removed(live, deletion_timestamp_ms=self._clock.now_ms(), data_change=False)
            )
        carried = self._rows.new_positions(deleted, list(self._new_files.values()))
        if carried is None:
            return None
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
        return Resolution(actions=rebased, rest=without_files(winner, frozenset(removes)))

    def _deleted_rows(self, own: RemoveFile, after: AddFile | None) -> OldRows | None:
        """The rows of an old file that the winner deleted. None when the winner restored a row."""
        key = canonical_log_path(own.path)
        file = self._old_files.get(key)
        if file is None:
            count = self._records_of(own)
            file = OldFile(
                remove=own, left_out=self._positions(own.deletion_vector, count), num_records=count
            )
            self._old_files[key] = file
        old = self._positions(own.deletion_vector, file.num_records)
        if after is None:
            now: Positions = np.arange(file.num_records, dtype=np.int64)
        else:
            now = self._positions(after.deletion_vector, file.num_records)
        new = np.setdiff1d(now, old, assume_unique=True)
        if len(new) != len(now) - len(old):
            return None
        return OldRows(file=file, positions=new)

    def _with_deletions(
        self, actions: Sequence[Action], carried: Mapping[str, Positions]
    ) -> dict[str, AddFile | None]:
        """The new files with deletion vectors; None for a file that has no row left."""
        files: dict[str, AddFile | None] = {}
        partial: list[tuple[str, Positions, int]] = []
        for action in actions:
            if not isinstance(action, AddFile) or action.path not in carried:
                continue
            count = self._records(self._new_files[action.path])
            known = self._carried.get(action.path)
            new = carried[action.path]
            positions: Positions = np.unique(new if known is None else np.concatenate([new, known]))
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
