"""Conflicts of a MERGE with writers that delete rows of the same files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from delta_core.actions import Action
from delta_core.transaction.conflict_checker import RuleViolation
from delta_core.transaction.conflict_resolver import Resolution
from delta_core.transaction.deletion_vector_merger import DeletionVectorMerger
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.winning_commit import WinningCommit

_MERGE_NAMES: Final[Mapping[str, str]] = {
    "numDeletedRows": "numTargetRowsDeleted",
    "numRemovedFiles": "numTargetFilesRemoved",
    "numDeletionVectorsAdded": "numTargetDeletionVectorsAdded",
    "numDeletionVectorsRemoved": "numTargetDeletionVectorsRemoved",
    "numDeletionVectorsUpdated": "numTargetDeletionVectorsUpdated",
}
_RESULT_NAMES: Final[Mapping[str, str]] = {
    "numTargetRowsDeleted": "num_target_rows_deleted",
    "numTargetFilesRemoved": "num_target_files_removed",
    "numTargetDeletionVectorsAdded": "num_deletion_vectors_added",
}


class MergeDeletions(DeletionVectorMerger):
    """Settles conflicts as for a DELETE. Rows that a winner deleted first do not count in the metrics."""

    def __init__(self, *args: Any, deletes: str | None, **kwargs: Any) -> None:
        """Create the resolver, without a request.

        Args:
            *args: see `DeletionVectorMerger`.
            deletes: the metric of the clauses that delete, where all of them have the same.
            **kwargs: see `DeletionVectorMerger`.
        """
        super().__init__(*args, **kwargs)
        self._deletes = deletes

    def resolve(
        self,
        violation: RuleViolation,
        winner: WinningCommit,
        actions: Sequence[Action],
        *,
        transaction: CommitFootprint,
    ) -> Resolution | None:
        """See `DeletionVectorMerger.resolve`."""
        resolution = super().resolve(violation, winner, actions, transaction=transaction)
        if resolution is None:
            return None
        counts = {
            _MERGE_NAMES[name]: change for name, change in resolution.counts.items() if name in _MERGE_NAMES
        }
        if self._deletes is not None:
            counts[self._deletes] = counts.get("numTargetRowsDeleted", 0)
        return replace(resolution, counts=counts)


def committed_counts(recorded: Mapping[str, str]) -> dict[str, int]:
    """The metrics of a result that a conflict may have changed, from those of the commit."""
    return {ours: int(recorded[name]) for name, ours in _RESULT_NAMES.items() if name in recorded}
