"""The metrics of a MERGE, named as in delta-spark."""

from __future__ import annotations

from delta_core.dml.find_rows import FileMatch, FoundRows
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction import num_records
from spark_jobs.dml.clauses import MergeClauses
from spark_jobs.dml.commit import count_rows, total_bytes
from spark_jobs.dml.matching import Matches
from spark_jobs.dml.source import MergeSource
from spark_jobs.dml.target import TargetFiles
from spark_jobs.writer.staged_files import StagedFiles


def merge_metrics(
    snapshot: Snapshot,
    *,
    clauses: MergeClauses,
    source: MergeSource,
    removed: TargetFiles,
    matches: Matches,
    staged: StagedFiles,
    found: FoundRows | None,
) -> dict[str, int]:
    """The operation's metrics with delta-spark's names. The caller adds the times.

    Args:
        snapshot: the version before the merge.
        clauses: the clauses.
        source: the source.
        removed: the files that the merge removes: with deletion vectors, those without remaining rows.
        matches: the result of the first phase.
        staged: the written files.
        found: the rows that deletion vectors delete; None when the remaining rows are copied.
    """

    def rows(section: str, kind: str) -> int:
        return matches.rows(section, getattr(clauses, section), kind)

    updated, deleted = rows("matched", "update"), rows("matched", "delete")
    updated_alone, deleted_alone = (
        rows("not_matched_by_source", "update"),
        rows("not_matched_by_source", "delete"),
    )
    adds = staged.adds
    output = sum(num_records(add) or 0 for add in adds)
    if found is None:
        kept = count_rows(snapshot, removed.live) - deleted - deleted_alone
        partial: list[FileMatch] = []
    else:
        kept = updated + updated_alone
        partial = [match for match in found.matches if not match.is_whole]
    had_vectors = len(removed) - removed.live.column("deletion_vector").null_count
    replaced = sum(match.file.deletion_vector is not None for match in partial)
    return {
        "numSourceRows": source.rows,
        "numTargetRowsInserted": output - kept,
        "numTargetRowsUpdated": updated + updated_alone,
        "numTargetRowsMatchedUpdated": updated,
        "numTargetRowsNotMatchedBySourceUpdated": updated_alone,
        "numTargetRowsDeleted": deleted + deleted_alone,
        "numTargetRowsMatchedDeleted": deleted,
        "numTargetRowsNotMatchedBySourceDeleted": deleted_alone,
        "numTargetRowsCopied": kept - updated - updated_alone,
        "numOutputRows": output,
        "numTargetFilesAdded": len(adds),
        "numTargetFilesRemoved": len(removed),
        "numTargetBytesAdded": total_bytes(adds),
        "numTargetBytesRemoved": sum(removed.live.column("size_bytes").to_pylist()),
        "numTargetChangeFilesAdded": len(staged.changes),
        "numTargetDeletionVectorsAdded": len(partial),
        "numTargetDeletionVectorsRemoved": had_vectors + replaced,
        "numTargetDeletionVectorsUpdated": replaced,
    }
