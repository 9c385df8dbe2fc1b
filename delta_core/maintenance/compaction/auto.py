"""Auto-compaction: a table asks for it, and a job does it after commits, never a writer.

A partition is compacted as soon as it has many small files. The limits are those of delta-spark.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from delta_core.arguments import whole_bytes
from delta_core.errors import ConfigurationError
from delta_core.maintenance.clustering import ClusteringPlan, plan_clustering
from delta_core.maintenance.compaction.plan import CompactionPlan, plan_compaction
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.storage.data_access import DataAccess

AUTO_COMPACT: Final = "delta.autoOptimize.autoCompact"
AUTO_OPTIMIZE: Final = "delta.autoOptimize"
"""The older property. It counts where AUTO_COMPACT is not set."""

MIN_FILES: Final = 50
TARGET_BYTES: Final = 128 << 20

_ON: Final = frozenset({"true", "auto", "legacy"})


def asks_for_auto_compaction(snapshot: Snapshot) -> bool:
    """Whether the table's properties ask for auto-compaction."""
    configuration = snapshot.metadata.configuration
    value = configuration.get(AUTO_COMPACT, configuration.get(AUTO_OPTIMIZE, "false"))
    return value.strip().lower() in _ON


def plan_auto_compaction(
    snapshot: Snapshot,
    *,
    min_files: int = MIN_FILES,
    target_size_bytes: int | None = None,
    reach: DataAccess | None = None,
) -> CompactionPlan | ClusteringPlan:
    """The compaction of the partitions that have many small files; empty when no partition has them.

    Files of half the target size are not small. A table with clustering columns is clustered as a whole, once
    that rewrites so many files.

    Args:
        snapshot: the version to plan for.
        min_files: the number of small files from which on a partition is compacted.
        target_size_bytes: size of a new file; 128 MiB, or `delta.targetFileSize` if that is less, when None.
        reach: see `plan_compaction`.

    Raises:
        ConfigurationError: `min_files` is below 2, or the target is not positive.
        UnsupportedTableFeatureError: the table cannot be read.
    """
    if min_files < 2:
        raise ConfigurationError(
            f"Auto-compaction of {min_files} files does not make fewer files.", fix="Set at least 2 files."
        )
    target = whole_bytes(target_size_bytes, what="target_size_bytes")
    if target is None:
        target = min(TARGET_BYTES, snapshot.properties.target_file_size_bytes)
    clustering = clustering_of(snapshot)
    if clustering is not None and clustering.columns:
        plan = plan_clustering(snapshot, target_size_bytes=target, reach=reach)
        return plan if plan.num_files >= min_files else replace(plan, groups=())
    found = plan_compaction(
        snapshot, target_size_bytes=target, min_file_size_bytes=max(1, target // 2), reach=reach
    )
    small: Counter[tuple[tuple[str, str | None], ...]] = Counter()
    for item in found.bins:
        small[tuple(item.partition_values.items())] += len(item.files)
    due = tuple(item for item in found.bins if small[tuple(item.partition_values.items())] >= min_files)
    return replace(found, bins=due)
