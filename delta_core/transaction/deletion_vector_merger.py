"""Merges the deletion vectors of two commits that delete rows of the same file.

By files, a DELETE conflicts with every winner that changed one of its files. By rows it does not, as long as
the winner only deleted rows: a predicate is evaluated for each row separately. So after the winner, the rows
left to delete are those that matched before, without those that the winner deleted. That is the order of the
versions, so it is valid at every isolation level. The conflict rules still check what a winner *adds*
(PROTOCOL.md, "Deletion Vectors", "Action Reconciliation").

A conflict is settled for a file that the winner kept under its path, when at least the rows deleted before
are still deleted. A restore that restored some rows remains a conflict. If a rewrite such as a compaction
moved the rows, a row map finds them in the new files, which get the deletion vectors instead. Where it does
not find them, the statement can run again (`dml.moved_rows`).

The rules judge the files that a winner added by their statistics. An UPDATE of a few rows adds a file whose
bounds contain many values. So the rows are read: if none of them matches, there is no conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from delta_core.actions import (
    Action,
    AddCdcFile,
    AddFile,
    Metadata,
    Protocol,
    RemoveFile,
)
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.deletion_vectors.file_update import (
    DeletionVectorUnion,
    removed,
    unite,
    update_deletion_vector,
)
from delta_core.deletion_vectors.roaring import Positions
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.errors import DeltaError
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.conflict_checker import RuleViolation, find_conflict
from delta_core.transaction.conflict_resolver import Resolution
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.row_map import OldFile, OldRows, RowMap
from delta_core.transaction.row_resolver import RowResolver, deletion_vector_id, without_files
from delta_core.transaction.winning_commit import WinningCommit

_log = logging.getLogger(__name__)

MOST_READ_BYTES: Final = 256 << 20
"""Rows of added files are read when all disputed files of a winner together are not larger."""

SETTLED_RULES: Final = frozenset({"concurrent_append", "delete_read", "delete_delete"})
"""The rules that fire on a file with a new deletion vector: it counts as removed, and as added with rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptFile:
    """A file that the winner kept: the `remove` of its earlier state and the `add` of its live state."""

    before: RemoveFile
    after: AddFile

    @property
    def key(self) -> str:
        return canonical_log_path(self.after.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _MergedFile:
    """The merged change of the transaction to a file that the winner kept.

    Attributes:
        kept: the file as the winner left it.
        union: the deleted rows after both commits; None when the transaction deletes every row.
        deleted_twice: the number of rows that both commits delete.
        had_deletion_vector: whether the transaction would have written a deletion vector for the file.
    """

    kept: _KeptFile
    union: DeletionVectorUnion | None
    deleted_twice: int
    had_deletion_vector: bool

    @property
    def is_done(self) -> bool:
        """Whether the winner already deleted every row that the transaction deletes."""
        return self.union is not None and self.union.is_unchanged

    @property
    def gets_deletion_vector(self) -> bool:
        return self.union is not None and not self.union.is_unchanged and not self.union.deletes_all


class DeletionVectorMerger(RowResolver):
    """Settles conflicts of a statement and its winners that delete rows of the same files.

    It is for statements that evaluate each row separately (DELETE, UPDATE). They delete rows only through
    deletion vectors and copy no other rows to new files.

    A transaction such as an UPDATE also writes data or change data of the rows that it deletes. Then a row
    that the winner deleted too is a conflict: it must not be restored or reported twice.
    It is also one for a statement that inserts a row where it finds none to delete, as a MERGE can.
    """

    def __init__(
        self,
        store: LogStore,
        *,
        matches: Callable[[AddFile], bool] | None = None,
        observed: Mapping[str, Positions] | None = None,
        moved: RowMap | None = None,
        may_insert: bool = False,
        settles: bool = True,
        properties: TableProperties | None = None,
        access: DataAccess = TABLE_ONLY,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create the resolver, without a request.

        Args:
            store: the table's store.
            matches: reads a file, and returns whether the statement would change one of its rows. None when
                only statistics decide.
            observed: for each file that the statement read, by its canonical path, the rows that it does not
                change and whose deletion would change its result. None when there are no such rows.
            moved: finds rows that a rewrite has moved. None when a rewrite is a conflict.
            may_insert: whether the statement could have inserted a row if one that it deletes were missing.
            settles: False when the outcome also depends on rows that the statement does not delete. Then
                every conflict stands, and the resolver only notices that rows were moved.
            properties, access, clock: see `RowResolver`.
        """
        super().__init__(store, properties=properties, access=access, clock=clock)
        self._matches = matches
        self._observed = observed
        self._moved = moved
        self._may_insert = may_insert
        self._settles = settles
        self.rows_were_moved = False
        """Whether the transaction lost to a rewrite, which only moved the rows of its files."""
        self.has_followed = False
        """Whether rows that a rewrite has moved were found in its new files."""

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
        all new ones. Disputed files that the winner added are read. When a read or write fails, the conflict
        stands.
        """
        if violation.rule not in SETTLED_RULES:
            return None
        moves = violation.rule == "delete_delete" and _moves_rows(winner, transaction)
        # Until the rows are found.
        self.rows_were_moved = moves
        if not self._settles:
            return None
        try:
            if moves:
                resolution = self._follow(winner, actions)
            else:
                resolution = self._settle(winner, actions, transaction)
        except DeltaError as error:
            _log.warning(
                "deletion vectors could not be merged", extra={"winner": winner.version, "error": str(error)}
            )
            return None
        if resolution is not None:
            self.has_followed = self.has_followed or moves
            self.rows_were_moved = False
            self._last = resolution.actions
        return resolution

    def _follow(self, winner: WinningCommit, actions: Sequence[Action]) -> Resolution | None:
        """The actions with deletion vectors of the new files of a rewrite instead of its old files."""
        if self._moved is None or self._observed is not None:
            return None
        if any(isinstance(action, Metadata | Protocol) for action in actions):
            return None
        removes = {canonical_log_path(a.path): a for a in actions if isinstance(a, RemoveFile)}
        adds = {canonical_log_path(a.path): a for a in actions if isinstance(a, AddFile)}
        kept = {canonical_log_path(add.path) for add in winner.adds}
        gone = {canonical_log_path(r.path): r for r in winner.removes}
        new_files = [add for add in winner.adds if canonical_log_path(add.path) not in gone]
        moved = [key for key in gone if key in removes and key not in kept]
        if sum(add.size_bytes for add in new_files) > MOST_READ_BYTES:
            return None
        old: list[OldRows] = []
        for key in moved:
            own = removes[key]
            if deletion_vector_id(own) != deletion_vector_id(gone[key]):
                return None
            records = self._records_of(own)
            before = self._positions(own.deletion_vector, records)
            new = self._new_positions(adds.get(key), before, records)
            if new is None:
                new = np.setdiff1d(np.arange(records, dtype=np.int64), before, assume_unique=True)
            file = OldFile(remove=own, left_out=before, num_records=records)
            old.append(OldRows(file=file, positions=new))
        found = self._moved.new_positions(old, new_files)
        if found is None:
            return None
        unions = []
        for add in new_files:
            if add.path not in found:
                continue
            records = self._records(add)
            known = self._positions(add.deletion_vector, records)
            if len(np.intersect1d(known, found[add.path])):
                return None
            unions.append((add, unite(known, found[add.path], num_records=records)))
        followed = [a for a in actions if not self._is_of(a, frozenset(moved))]
        return Resolution(
            actions=[*followed, *self._deleting(unions, data_change=removes[moved[0]].data_change)],
            rest=without_files(winner, {*moved, *(canonical_log_path(add.path) for add, _ in unions)}),
        )

    @staticmethod
    def _is_of(action: Action, keys: Collection[str]) -> bool:
        return isinstance(action, AddFile | RemoveFile) and canonical_log_path(action.path) in keys

    def _deleting(
        self, files: Sequence[tuple[AddFile, DeletionVectorUnion]], *, data_change: bool
    ) -> Iterator[Action]:
        """The actions that delete rows of files."""
        now_ms = self._clock.now_ms()
        partly = [(add, union) for add, union in files if not union.deletes_all]
        dvs = write_deletion_vectors(
            self._store, (union.positions for _, union in partly), properties=self._properties
        )
        self._written += dvs.descriptors
        for (add, union), dv in zip(partly, dvs.descriptors, strict=True):
            update = update_deletion_vector(
                add,
                dv,
                deletion_timestamp_ms=now_ms,
                num_records=union.num_records,
                data_change=data_change,
            )
            yield from (action for action in (update.remove, update.add) if action is not None)
        for add, union in files:
            if union.deletes_all:
                yield removed(add, deletion_timestamp_ms=now_ms, data_change=data_change)

    def _settle(
        self, winner: WinningCommit, actions: Sequence[Action], transaction: CommitFootprint
    ) -> Resolution | None:
        if any(isinstance(action, Metadata | Protocol) for action in actions):
            return None  # The transaction changes more than rows.
        disputed = [
            kept
            for kept in _kept_files(winner)
            if _is_disputed(transaction, winner, adds=(kept.after,), removes=(kept.before,))
        ]
        without_match = self._without_match(winner, transaction)
        removes = {canonical_log_path(a.path): a for a in actions if isinstance(a, RemoveFile)}
        adds = {canonical_log_path(a.path): a for a in actions if isinstance(a, AddFile)}
        writes_rows = any(isinstance(a, AddCdcFile) for a in actions) or bool(adds.keys() - removes.keys())
        needs_rows = writes_rows or self._may_insert
        merged: dict[str, _MergedFile] = {}
        for kept in disputed:
            records = self._records(kept.after)
            before = self._positions(kept.before.deletion_vector, records)
            after = self._positions(kept.after.deletion_vector, records)
            by_winner = np.setdiff1d(after, before, assume_unique=True)
            if len(by_winner) != len(after) - len(before):
                return None  # The winner restored rows.
            if self._observed is not None:
                seen = self._observed.get(kept.key)
                if seen is None or len(np.intersect1d(by_winner, seen, assume_unique=True)):
                    return None
            removed_here = removes.get(kept.key)
            if removed_here is None:
                if kept.key in adds:
                    return None
                continue  # The file was only read. Its remaining rows match or do not match as before.
            if deletion_vector_id(removed_here) != deletion_vector_id(kept.before):
                return None
            own_add = adds.get(kept.key)
            new_positions = self._new_positions(own_add, before, records)
            file = _merge(kept, own_add, after, by_winner, new_positions, records)
            if file.deleted_twice and needs_rows:
                return None
            merged[kept.key] = file
        settled = {kept.key for kept in disputed} | without_match
        if not settled:
            return None
        return Resolution(
            actions=self._rebased(actions, merged),
            rest=without_files(winner, settled),
            counts=_counts(merged.values()),
        )

    def _without_match(self, winner: WinningCommit, transaction: CommitFootprint) -> set[str]:
        """The disputed files that the winner added and in which no row matches; empty if one row does."""
        kept = {canonical_log_path(remove.path) for remove in winner.removes}
        added = [
            add
            for add in winner.adds
            if canonical_log_path(add.path) not in kept
            and _is_disputed(transaction, winner, adds=(add,), removes=())
        ]
        if self._matches is None or sum(add.size_bytes for add in added) > MOST_READ_BYTES:
            return set()
        if any(self._matches(add) for add in added):
            return set()
        return {canonical_log_path(add.path) for add in added}

    def _rebased(self, actions: Sequence[Action], merged: Mapping[str, _MergedFile]) -> list[Action]:
        """The actions, with those of merged files rewritten to follow the winner."""
        now_ms = self._clock.now_ms()
        dvs = write_deletion_vectors(
            self._store,
            (
                file.union.positions
                for file in merged.values()
                if file.gets_deletion_vector and file.union is not None
            ),
            properties=self._properties,
        )
        self._written += dvs.descriptors
        descriptors = iter(dvs.descriptors)
        rewritten: dict[str, tuple[RemoveFile | None, AddFile | None]] = {}
        changes_data = {
            canonical_log_path(a.path): a.data_change for a in actions if isinstance(a, RemoveFile)
        }
        for key, file in merged.items():
            live, changes = file.kept.after, changes_data[key]
            if file.is_done:
                rewritten[key] = (None, None)
            elif file.gets_deletion_vector and file.union is not None:
                update = update_deletion_vector(
                    live,
                    next(descriptors),
                    deletion_timestamp_ms=now_ms,
                    num_records=file.union.num_records,
                    data_change=changes,
                )
                rewritten[key] = (update.remove, update.add)
            else:
                rewritten[key] = (removed(live, deletion_timestamp_ms=now_ms, data_change=changes), None)
        result: list[Action] = []
        for action in actions:
            path = action.path if isinstance(action, AddFile | RemoveFile) else None
            if path is None or canonical_log_path(path) not in rewritten:
                result.append(action)
                continue
            new = rewritten[canonical_log_path(path)][0 if isinstance(action, RemoveFile) else 1]
            if new is not None:
                result.append(new)
        return result

    def _new_positions(self, own_add: AddFile | None, before: Positions, records: int) -> Positions | None:
        """The rows that the transaction deletes from a file; None when it deletes all remaining rows."""
        if own_add is None:
            return None
        return np.setdiff1d(self._positions(own_add.deletion_vector, records), before, assume_unique=True)


def _moves_rows(winner: WinningCommit, transaction: CommitFootprint) -> bool:
    """Whether the winner is a rewrite of files that the transaction removes: it changes no data."""
    if any(add.data_change for add in winner.adds) or any(remove.data_change for remove in winner.removes):
        return False
    kept = {canonical_log_path(add.path) for add in winner.adds}
    removed_paths = {canonical_log_path(remove.path) for remove in winner.removes}
    return bool((removed_paths - kept) & transaction.removed_files)


def _kept_files(winner: WinningCommit) -> list[_KeptFile]:
    before = {canonical_log_path(remove.path): remove for remove in winner.removes}
    pairs = ((before.get(canonical_log_path(add.path)), add) for add in winner.adds)
    return [_KeptFile(before=remove, after=add) for remove, add in pairs if remove is not None]


def _is_disputed(
    transaction: CommitFootprint,
    winner: WinningCommit,
    *,
    adds: tuple[AddFile, ...],
    removes: tuple[RemoveFile, ...],
) -> bool:
    """Whether the transaction would conflict with a winner that had changed only these files."""
    only_these_files = replace(
        winner,
        commit_info=None,
        adds=adds,
        removes=removes,
        metadata=None,
        protocol=None,
        transactions=(),
        domain_metadata=(),
    )
    violation = find_conflict(transaction, only_these_files)
    return violation is not None and violation.rule in SETTLED_RULES


def _merge(
    kept: _KeptFile,
    own_add: AddFile | None,
    after: Positions,
    by_winner: Positions,
    new_positions: Positions | None,
    records: int,
) -> _MergedFile:
    if new_positions is None:
        return _MergedFile(kept=kept, union=None, deleted_twice=len(by_winner), had_deletion_vector=False)
    union = unite(after, new_positions, num_records=records)
    return _MergedFile(
        kept=kept,
        union=union,
        deleted_twice=len(new_positions) - len(union.newly_deleted),
        had_deletion_vector=own_add is not None,
    )


def _counts(merged: Iterable[_MergedFile]) -> dict[str, int]:
    """The changes of the metrics that delta-spark records for a DELETE."""
    of_vectors = ("numDeletionVectorsAdded", "numDeletionVectorsRemoved", "numDeletionVectorsUpdated")
    counts = dict.fromkeys(("numDeletedRows", "numRemovedFiles", *of_vectors), 0)
    for file in merged:
        counts["numDeletedRows"] -= file.deleted_twice
        if file.had_deletion_vector and not file.gets_deletion_vector:
            counts["numDeletionVectorsAdded"] -= 1
            counts["numRemovedFiles"] += not file.is_done
        had = file.kept.before.deletion_vector is not None
        has = file.kept.after.deletion_vector is not None and not file.is_done
        counts["numDeletionVectorsRemoved"] += has - had
        has_both = file.gets_deletion_vector and file.kept.after.deletion_vector is not None
        counts["numDeletionVectorsUpdated"] += has_both - (had and file.had_deletion_vector)
    return counts
