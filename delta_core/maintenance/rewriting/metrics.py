"""The metrics of an OPTIMIZE, under delta-spark's names, so that dashboards work for both writers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_core.actions import AddFile


def operation_metrics(
    removed_sizes: Sequence[int], adds: Sequence[AddFile], *, deletion_vectors: int = 0
) -> dict[str, int]:
    """`commitInfo.operationMetrics` of an OPTIMIZE.

    Args:
        removed_sizes: bytes of each rewritten file.
        adds: the new files; empty when all rows of the old files were deleted.
        deletion_vectors: number of rewritten files that had a deletion vector.
    """
    sizes = sorted(add.size_bytes for add in adds)
    counts = {
        "numRemovedFiles": len(removed_sizes),
        "numRemovedBytes": sum(removed_sizes),
        "numAddedFiles": len(sizes),
        "numAddedBytes": sum(sizes),
        "numDeletionVectorsRemoved": deletion_vectors,
    }
    if not sizes:
        return counts
    return {
        **counts,
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
    }


def file_metrics(
    removed_sizes: Sequence[int],
    adds: Sequence[AddFile],
    *,
    considered_files: int,
    partitions: int,
    bins: int,
    preserves_order: bool = True,
) -> dict[str, Any]:
    """The metrics that delta-spark's `optimize()` returns."""
    return {
        "numFilesAdded": len(adds),
        "numFilesRemoved": len(removed_sizes),
        "filesAdded": _distribution([add.size_bytes for add in adds]),
        "filesRemoved": _distribution(removed_sizes),
        "partitionsOptimized": partitions,
        "numBins": bins,
        "totalConsideredFiles": considered_files,
        "totalFilesSkipped": considered_files - len(removed_sizes),
        "preserveInsertionOrder": preserves_order,
    }


def _distribution(sizes: Sequence[int]) -> dict[str, Any]:
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }
