"""Rows that two commits take from one file by deletion vectors: the second one's vector names both.

By its files a DELETE conflicts with whoever changed one of them meanwhile. By its rows it does not, as long
as the winner only took rows away: which rows a predicate is true for is a question of each row by itself, so
what is left to delete after the winner is what there was to delete, without what the winner has taken. That
is the order of the versions, so it holds at every isolation level; what a winner *adds* is judged by the
rules as ever (PROTOCOL.md, "Deletion Vectors", "Action Reconciliation").

Settled is a file that the winner kept under its path, with at least the rows deleted that were deleted
before. A compaction that moved the rows stays a conflict, and so does a restore that brought some back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from delta_core.actions import (
    Action,
    AddCdcFile,
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
    with_new_deletion_vector,
)
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.deletion_vectors.union import DeletionVectorUnion, unite
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.errors import DeltaError
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.commit_result import CommitResult, Committed
from delta_core.transaction.conflict_checker import RuleViolation, find_conflict
from delta_core.transaction.conflict_resolver import Resolution
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.winning_commit import WinningCommit

_log = logging.getLogger(__name__)

SETTLED_RULES: Final = frozenset({"concurrent_append", "delete_read", "delete_delete"})
"""The rules that a file with another vector fires: it counts as removed, and as added with rows."""

_NOTHING: Final[Positions] = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptFile:
    """A file of the winner's: as it was, and as it is live now."""

    before: RemoveFile
    after: AddFile

    @property
    def key(self) -> str:
        return canonical_log_path(self.after.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joined:
    """What the transaction does to a kept file now.

    Attributes:
        kept: the winner's file.
        union: its deleted rows after both; None where every row goes.
        twice: rows that both take.
        had_deletion_vector: whether the transaction would have given it a vector.
    """

    kept: _KeptFile
    union: DeletionVectorUnion | None
    twice: int
    had_deletion_vector: bool

    @property
    def is_done(self) -> bool:
        """Whether the winner has taken every row already that the transaction would take."""
        return self.union is not None and self.union.is_unchanged

    @property
    def gets_deletion_vector(self) -> bool:
        return self.union is not None and not self.union.is_unchanged and not self.union.deletes_all


class DeletionVectorMerger:
    """Settles what a statement and its winners take from the same files by deletion vectors.

    For statements whose rows are each judged by themselves (DELETE, UPDATE), and which take rows by vectors
    alone: none is copied to a new file. One resolver serves one transaction; when that has ended, `discard`
    is called with its result.

    Where the transaction writes data or change data of the rows that it takes, as an UPDATE does, rows that a
    winner has taken as well are a conflict: they must not come back, nor be reported twice.
    """

    def __init__(
        self,
        store: LogStore,
        *,
        properties: TableProperties | None = None,
        access: DataAccess = TABLE_ONLY,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare; no request.

        Args:
            store: the table's.
            properties: the table's; they say where files of vectors are put.
            access: where besides the table files may be.
            clock: when files stopped being part of the table.
        """
        self._store = store
        self._properties = properties
        self._access = access
        self._clock = clock
        self._written: list[DeletionVectorDescriptor] = []
        self._last: Sequence[Action] | None = None

    @property
    def has_settled(self) -> bool:
        """Whether what would be committed now is no longer what was staged."""
        return self._last is not None

    def resolve(
        self,
        violation: RuleViolation,
        winner: WinningCommit,
        actions: Sequence[Action],
        *,
        transaction: CommitFootprint,
    ) -> Resolution | None:
        """See `ConflictResolver`.

        Requests: the vectors of each file in dispute are read, three at most, and one file is written for all
        new ones. What cannot be read or written settles nothing.
        """
        if violation.rule not in SETTLED_RULES:
            return None
        try:
            resolution = self._settle(winner, actions, transaction)
        except DeltaError as error:
            _log.warning(
                "deletion vectors could not be joined", extra={"winner": winner.version, "error": str(error)}
            )
            return None
        if resolution is not None:
            self._last = resolution.actions
        return resolution

    def discard(self, result: CommitResult, owned: OwnedFiles) -> None:
        """Delete what was written for nothing, once the transaction has ended.

        After a commit those are vectors that it does not name, since a later attempt had others; after a
        failure that is certain, everything. Errors as `OwnedFiles.discard`.

        Args:
            result: the transaction's.
            owned: what the statement itself has written for it.
        """
        everything = owned.with_deletion_vectors(self._written)
        if isinstance(result, Committed):
            if self._last is not None and not result.already_applied:
                everything.discard_deletion_vectors_not_in(self._last)
            return
        everything.discard(result)

    def _settle(
        self, winner: WinningCommit, actions: Sequence[Action], transaction: CommitFootprint
    ) -> Resolution | None:
        if any(isinstance(action, Metadata | Protocol) for action in actions):
            return None  # More than rows is at stake.
        disputed = [kept for kept in _kept_files(winner) if _is_disputed(transaction, winner, kept)]
        removes = {canonical_log_path(a.path): a for a in actions if isinstance(a, RemoveFile)}
        adds = {canonical_log_path(a.path): a for a in actions if isinstance(a, AddFile)}
        reports = any(isinstance(a, AddCdcFile) for a in actions) or bool(adds.keys() - removes.keys())
        joined: dict[str, _Joined] = {}
        for kept in disputed:
            records = self._records(kept.after)
            known = self._positions(kept.before.deletion_vector, records)
            gone = self._positions(kept.after.deletion_vector, records)
            theirs = np.setdiff1d(gone, known, assume_unique=True)
            if len(theirs) != len(gone) - len(known):
                return None  # Rows came back.
            removed_here = removes.get(kept.key)
            if removed_here is None:
                if kept.key in adds:
                    return None
                continue  # It was only read: which of the rows that are left match is as it was.
            if _deletion_vector_id(removed_here) != _deletion_vector_id(kept.before):
                return None
            mine = adds.get(kept.key)
            one = _join(kept, mine, gone, theirs, self._new_positions(mine, known, records), records)
            if one.twice and reports:
                return None
            joined[kept.key] = one
        if not disputed:
            return None
        return Resolution(
            actions=self._rebased(actions, joined),
            rest=_without(winner, disputed),
            counts=_counts(joined.values()),
        )

    def _rebased(self, actions: Sequence[Action], joined: Mapping[str, _Joined]) -> list[Action]:
        """The actions, where those of joined files are made anew after the winner's."""
        now_ms = self._clock.now_ms()
        dvs = write_deletion_vectors(
            self._store,
            (
                one.union.positions
                for one in joined.values()
                if one.gets_deletion_vector and one.union is not None
            ),
            properties=self._properties,
        )
        self._written += dvs.descriptors
        descriptors = iter(dvs.descriptors)
        made: dict[str, tuple[RemoveFile | None, AddFile | None]] = {}
        changes_data = {
            canonical_log_path(a.path): a.data_change for a in actions if isinstance(a, RemoveFile)
        }
        for key, one in joined.items():
            live, changes = one.kept.after, changes_data[key]
            if one.is_done:
                made[key] = (None, None)
            elif one.gets_deletion_vector and one.union is not None:
                update = with_new_deletion_vector(
                    live,
                    next(descriptors),
                    deletion_timestamp_ms=now_ms,
                    num_records=one.union.num_records,
                    data_change=changes,
                )
                made[key] = (update.remove, update.add)
            else:
                made[key] = (removed(live, deletion_timestamp_ms=now_ms, data_change=changes), None)
        result: list[Action] = []
        for action in actions:
            path = action.path if isinstance(action, AddFile | RemoveFile) else None
            if path is None or canonical_log_path(path) not in made:
                result.append(action)
                continue
            new = made[canonical_log_path(path)][0 if isinstance(action, RemoveFile) else 1]
            if new is not None:
                result.append(new)
        return result

    def _records(self, file: AddFile) -> int:
        count = physical_records(file)
        return count_records(self._store, file, access=self._access) if count is None else count

    def _positions(self, dv: DeletionVectorDescriptor | None, records: int) -> Positions:
        if dv is None:
            return _NOTHING
        return read_deletion_vector(self._store, dv, num_rows=records, access=self._access)

    def _new_positions(self, mine: AddFile | None, known: Positions, records: int) -> Positions | None:
        """The rows that the transaction takes from a file; None for every one that is left."""
        if mine is None:
            return None
        return np.setdiff1d(self._positions(mine.deletion_vector, records), known, assume_unique=True)


def _kept_files(winner: WinningCommit) -> list[_KeptFile]:
    before = {canonical_log_path(remove.path): remove for remove in winner.removes}
    pairs = ((before.get(canonical_log_path(add.path)), add) for add in winner.adds)
    return [_KeptFile(before=remove, after=add) for remove, add in pairs if remove is not None]


def _is_disputed(transaction: CommitFootprint, winner: WinningCommit, kept: _KeptFile) -> bool:
    """Whether the transaction could not follow a winner that had changed this file alone."""
    alone = replace(
        winner,
        commit_info=None,
        adds=(kept.after,),
        removes=(kept.before,),
        metadata=None,
        protocol=None,
        transactions=(),
        domain_metadata=(),
    )
    found = find_conflict(transaction, alone)
    return found is not None and found.rule in SETTLED_RULES


def _without(winner: WinningCommit, settled: Sequence[_KeptFile]) -> WinningCommit:
    keys = {kept.key for kept in settled}
    info = winner.commit_info
    return replace(
        winner,
        # Without its removes it must not pass for an append that had looked at nothing.
        commit_info=None if info is None else replace(info, is_blind_append=False),
        adds=tuple(add for add in winner.adds if canonical_log_path(add.path) not in keys),
        removes=tuple(remove for remove in winner.removes if canonical_log_path(remove.path) not in keys),
    )


def _join(
    kept: _KeptFile,
    mine: AddFile | None,
    gone: Positions,
    theirs: Positions,
    wanted: Positions | None,
    records: int,
) -> _Joined:
    if wanted is None:
        return _Joined(kept=kept, union=None, twice=len(theirs), had_deletion_vector=False)
    union = unite(gone, wanted, num_records=records)
    twice = len(wanted) - len(union.newly_deleted)
    return _Joined(kept=kept, union=union, twice=twice, had_deletion_vector=mine is not None)


def _counts(joined: Iterable[_Joined]) -> dict[str, int]:
    """What becomes of the counts that delta-spark gives for a DELETE."""
    names = ("numDeletedRows", "numRemovedFiles", "numDeletionVectorsAdded", "numDeletionVectorsRemoved")
    counts = dict.fromkeys(names, 0)
    for one in joined:
        counts["numDeletedRows"] -= one.twice
        if one.had_deletion_vector and not one.gets_deletion_vector:
            counts["numDeletionVectorsAdded"] -= 1
            counts["numRemovedFiles"] += not one.is_done
        had = one.kept.before.deletion_vector is not None
        has = one.kept.after.deletion_vector is not None and not one.is_done
        counts["numDeletionVectorsRemoved"] += has - had
    return counts


def _deletion_vector_id(file: RemoveFile) -> str | None:
    return None if file.deletion_vector is None else file.deletion_vector.unique_id
