"""The common part of the resolvers that settle conflicts by rows: they read and write deletion vectors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from delta_core.actions import Action, AddFile, DeletionVectorDescriptor, RemoveFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.deletion_vectors.file_update import (
    count_records,
    physical_records,
    records_in_statistics,
    rows_in_footer,
)
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.commit_result import CommitResult, Committed
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.winning_commit import WinningCommit

NO_POSITIONS: Final[Positions] = np.empty(0, np.int64)


class RowResolver:
    """Base of resolvers: reads the deleted rows of files, and keeps the files that it has written.

    One resolver serves one transaction. The operation calls `discard` with the result when the transaction
    has ended.
    """

    def __init__(
        self,
        store: LogStore,
        *,
        properties: TableProperties | None = None,
        access: DataAccess = TABLE_ONLY,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create the resolver, without a request.

        Args:
            store: the table's store.
            properties: the table's properties. They determine where deletion vector files are written.
            access: where files outside the table may be read.
            clock: gives the deletion timestamps of removed files.
        """
        self._store = store
        self._properties = properties
        self._access = access
        self._clock = clock
        self._written: list[DeletionVectorDescriptor] = []
        self._last: Sequence[Action] | None = None

    @property
    def has_settled(self) -> bool:
        """Whether a settled conflict has replaced the staged actions."""
        return self._last is not None

    def discard(self, result: CommitResult, owned: OwnedFiles) -> None:
        """Delete the files that no commit needs, once the transaction has ended.

        After a commit these are the deletion vectors that a later attempt replaced. After a failure that
        certainly committed nothing, these are all files. Errors are handled as in `OwnedFiles.discard`.

        Args:
            result: the result of the transaction.
            owned: the files that the operation itself has written.
        """
        all_files = owned.with_deletion_vectors(self._written)
        if not isinstance(result, Committed):
            all_files.discard(result)
        elif self._last is not None and not result.already_applied:
            all_files.discard_deletion_vectors_not_in(self._last)

    def _records(self, file: AddFile) -> int:
        count = physical_records(file)
        return count_records(self._store, file, access=self._access) if count is None else count

    def _records_of(self, file: RemoveFile) -> int:
        count = records_in_statistics(file.stats)
        if count is None:
            place = self._access.locate(file.path, store=self._store)
            count = rows_in_footer(place, access=self._access)
        return count

    def _positions(self, dv: DeletionVectorDescriptor | None, records: int) -> Positions:
        if dv is None:
            return NO_POSITIONS
        return read_deletion_vector(self._store, dv, num_rows=records, access=self._access)


def deletion_vector_id(file: RemoveFile) -> str | None:
    """The id of the deletion vector of a removed file; None without one."""
    return None if file.deletion_vector is None else file.deletion_vector.unique_id


def without_files(winner: WinningCommit, settled: Collection[str]) -> WinningCommit:
    """The winner without its actions for files that are settled, by their canonical paths."""
    info = winner.commit_info
    return replace(
        winner,
        # Without its removes the winner could be mistaken for a blind append.
        commit_info=None if info is None else replace(info, is_blind_append=False),
        adds=tuple(add for add in winner.adds if canonical_log_path(add.path) not in settled),
        removes=tuple(remove for remove in winner.removes if canonical_log_path(remove.path) not in settled),
    )
