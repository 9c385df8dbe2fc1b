"""The result of a MERGE, and its metrics by the names of deltalake and of delta-spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from delta_core.dml.row_statement import RowStatementResult


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult(RowStatementResult):
    """The result of a MERGE. It also reads as the mapping of its metrics: `result["num_source_rows"]`.

    Its metrics are num_source_rows, num_target_rows_inserted, num_target_rows_updated,
    num_target_rows_deleted, num_target_rows_copied, num_output_rows, num_target_files_scanned,
    num_target_files_skipped_during_scan, num_target_files_added, num_target_files_removed,
    num_deletion_vectors_added, scan_time_ms, rewrite_time_ms and execution_time_ms. A row whose values do not
    change counts as updated too.
    """

    def __getitem__(self, name: str) -> int:
        """The metric of this name."""
        return self.metrics[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return iter(self.metrics)

    def __len__(self) -> int:
        """The number of metrics."""
        return len(self.metrics)

    def keys(self) -> Any:
        """The names of the metrics."""
        return self.metrics.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of one merge: rows, files, bytes and times."""

    source_rows: int
    inserted: int = 0
    matched_updated: int = 0
    by_source_updated: int = 0
    matched_deleted: int = 0
    by_source_deleted: int = 0
    copied: int = 0
    output: int = 0
    files_scanned: int = 0
    files_skipped: int = 0
    files_added: int = 0
    files_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    change_files: int = 0
    deletion_vectors_added: int = 0
    deletion_vectors_removed: int = 0
    deletion_vectors_updated: int = 0
    source_time_ms: int = 0
    scan_time_ms: int = 0
    rewrite_time_ms: int = 0

    @property
    def updated(self) -> int:
        """All updated rows."""
        return self.matched_updated + self.by_source_updated

    @property
    def deleted(self) -> int:
        """All deleted rows."""
        return self.matched_deleted + self.by_source_deleted

    @property
    def metrics(self) -> Mapping[str, int]:
        """The metrics by deltalake's names, without the total time."""
        return {
            "num_source_rows": self.source_rows,
            "num_target_rows_inserted": self.inserted,
            "num_target_rows_updated": self.updated,
            "num_target_rows_deleted": self.deleted,
            "num_target_rows_copied": self.copied,
            "num_output_rows": self.output,
            "num_target_files_scanned": self.files_scanned,
            "num_target_files_skipped_during_scan": self.files_skipped,
            "num_target_files_added": self.files_added,
            "num_target_files_removed": self.files_removed,
            "num_deletion_vectors_added": self.deletion_vectors_added,
            "scan_time_ms": self.source_time_ms + self.scan_time_ms,
            "rewrite_time_ms": self.rewrite_time_ms,
        }

    @property
    def history(self) -> dict[str, int]:
        """The metrics by delta-spark's names, for `operationMetrics`."""
        return {
            "numSourceRows": self.source_rows,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsUpdated": self.updated,
            "numTargetRowsMatchedUpdated": self.matched_updated,
            "numTargetRowsNotMatchedBySourceUpdated": self.by_source_updated,
            "numTargetRowsDeleted": self.deleted,
            "numTargetRowsMatchedDeleted": self.matched_deleted,
            "numTargetRowsNotMatchedBySourceDeleted": self.by_source_deleted,
            "numTargetRowsCopied": self.copied,
            "numOutputRows": self.output,
            "numTargetFilesAdded": self.files_added,
            "numTargetFilesRemoved": self.files_removed,
            "numTargetBytesAdded": self.bytes_added,
            "numTargetBytesRemoved": self.bytes_removed,
            "numTargetChangeFilesAdded": self.change_files,
            "numTargetDeletionVectorsAdded": self.deletion_vectors_added,
            "numTargetDeletionVectorsRemoved": self.deletion_vectors_removed,
            "numTargetDeletionVectorsUpdated": self.deletion_vectors_updated,
            "materializeSourceTimeMs": self.source_time_ms,
            "scanTimeMs": self.scan_time_ms,
            "rewriteTimeMs": self.rewrite_time_ms,
            "executionTimeMs": self.source_time_ms + self.scan_time_ms + self.rewrite_time_ms,
        }
