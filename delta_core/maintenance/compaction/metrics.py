"""The figures of a compaction, under delta-spark's names, so that dashboards need not care who ran it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_core.actions import AddFile
from delta_core.maintenance.compaction.plan import CompactionPlan


def operation_metrics(plan: CompactionPlan, adds: Sequence[AddFile]) -> dict[str, int]:
    """`commitInfo.operationMetrics` of an OPTIMIZE."""
    sizes = sorted(add.size_bytes for add in adds)
    return {
        "numRemovedFiles": plan.num_files,
        "numRemovedBytes": plan.total_bytes,
        "numAddedFiles": len(sizes),
        "numAddedBytes": sum(sizes),
        "numDeletionVectorsRemoved": 0,
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
    }


def file_figures(plan: CompactionPlan, adds: Sequence[AddFile]) -> dict[str, Any]:
    """What delta-spark's `optimize()` returns as metrics."""
    removed = [file.size_bytes for item in plan.bins for file in item.files]
    return {
        "numFilesAdded": len(adds),
        "numFilesRemoved": len(removed),
        "filesAdded": _distribution([add.size_bytes for add in adds]),
        "filesRemoved": _distribution(removed),
        "partitionsOptimized": plan.predicted()["partitions"],
        "numBins": len(plan.bins),
        "totalConsideredFiles": plan.considered_files,
        "totalFilesSkipped": plan.considered_files - len(removed),
        "preserveInsertionOrder": True,
    }


def _distribution(sizes: Sequence[int]) -> dict[str, Any]:
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }
