"""Executes a plan that rewrites files: a compaction, a purge, a Z-order or a clustering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.actions import AddFile
from delta_core.arguments import whole_bytes
from delta_core.data.file_writer import Compression
from delta_core.errors import ConfigurationError
from delta_core.maintenance.clustering.cluster_plan import ClusteringPlan
from delta_core.maintenance.clustering.execute import GroupResult
from delta_core.maintenance.clustering.order import order_of
from delta_core.maintenance.clustering.ordering import ordering_metrics, rewrite_groups
from delta_core.maintenance.clustering.plan import ZOrderPlan
from delta_core.maintenance.compaction.bins import rewrite_bins
from delta_core.maintenance.compaction.plan import CompactionPlan
from delta_core.maintenance.plan_json import require_same_table
from delta_core.maintenance.purge.plan import PurgePlan
from delta_core.maintenance.rewriting.metrics import file_metrics
from delta_core.maintenance.rewriting.rewrite import Operation
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import Committed

RewritePlan = CompactionPlan | PurgePlan | ZOrderPlan | ClusteringPlan

_DOING: Final[Mapping[type[RewritePlan], str]] = {
    CompactionPlan: "compact the table",
    PurgePlan: "purge the table",
    ZOrderPlan: "put the table into Z-order",
    ClusteringPlan: "cluster the table",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteResult:
    """The result of a rewrite.

    Attributes:
        committed: the commit; None when there was nothing to do.
        metrics: as delta-spark returns them (numFilesAdded, filesAdded{min,max,avg,...}, zOrderStats, ...).
        rows: number of rewritten rows, without deleted rows.
        groups: of a Z-order or clustering, each group with its new files and their curve.
    """

    committed: Committed | None
    metrics: Mapping[str, Any] = field(hash=False)
    rows: int = 0
    groups: tuple[GroupResult, ...] = field(default=(), hash=False)

    @property
    def version(self) -> int | None:
        """The committed version; None when this call committed nothing."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version


def apply_rewrite(
    snapshot: Snapshot,
    plan: RewritePlan,
    *,
    memory_limit_bytes: int | None = None,
    compression: Compression | None = None,
    auto: bool = False,
    run: Run = DEFAULT_RUN,
) -> RewriteResult:
    """Rewrite the plan's files and commit, if every file is still live in the newest version.

    No row changes. Concurrent appends do not conflict. A concurrent deletion of rows in one of the files
    conflicts. An empty plan commits nothing. When the commit fails, the new files are deleted, unless the
    outcome of the commit is unknown. The new files of a clustering have the `clusteringProvider` `liquid` and
    the ZCube tags that delta-spark writes, so that delta-spark does not cluster them again.

    Args:
        snapshot: any version of the plan's table.
        plan: the plan, made in this or another process.
        memory_limit_bytes: of a Z-order or clustering, the limit for the rows in memory at a time, of this
            process or, on Spark, of each task. A partition or cube that needs more is sorted on disk: below
            `TMPDIR`, or on Spark below the table. Half of the available memory, or 512 MiB on Spark, when
            None. The compressed columns of one row group of the old files need memory in addition.
        compression: the Parquet codec of the new files; the table's codec when None.
        auto: whether the commit records an automatic compaction (`auto` in `operationParameters`).
        run: the surroundings. Its executor runs the tasks, one for each bin or part of a group. Its progress
            receives `data.writing` for the new files, and the commit's events.

    Raises:
        MaintenanceError: the plan is for another table, or the clustering columns changed since the plan.
        ConfigurationError: the memory limit is not positive, or the table changed and cannot be sorted by the
            plan's columns any more.
        ConcurrentDeleteDeleteError: a planned file is no longer live.
        ConcurrentModificationError: another commit conflicts, such as one that changes the columns.
        UnsupportedTableFeatureError: the table needs a feature that this writer does not support.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    memory_limit_bytes = _positive(memory_limit_bytes)
    latest = snapshot.refresh()
    require_same_table(latest, plan.table_id)
    latest.require_readable(operation=_DOING[type(plan)], through_scan=True)
    latest.require_writable(writer_kind=WriterKind.REWRITE, operation=_DOING[type(plan)])
    if isinstance(plan, CompactionPlan | PurgePlan):
        return _rewrite_bins(latest, plan, compression, run, auto=auto)
    order = order_of(latest, plan)
    if plan.is_empty:
        return RewriteResult(committed=None, metrics=ordering_metrics(plan, [], order))
    rewritten, groups = rewrite_groups(
        latest, plan, order, memory_limit_bytes=memory_limit_bytes, compression=compression, run=run
    )
    return RewriteResult(
        committed=rewritten.committed,
        metrics=ordering_metrics(plan, rewritten.adds, order),
        rows=rewritten.rows,
        groups=tuple(groups),
    )


def _positive(memory_limit_bytes: int | None) -> int | None:
    memory_limit_bytes = whole_bytes(memory_limit_bytes, what="memory_limit_bytes")
    if memory_limit_bytes is not None and memory_limit_bytes < 1:
        raise ConfigurationError(
            f"A memory limit of {memory_limit_bytes} bytes is too small.", fix="Set a positive memory limit."
        )
    return memory_limit_bytes


def _rewrite_bins(
    latest: Snapshot,
    plan: CompactionPlan | PurgePlan,
    compression: Compression | None,
    run: Run,
    *,
    auto: bool,
) -> RewriteResult:
    if plan.is_empty:
        return RewriteResult(committed=None, metrics=_bin_metrics(plan, []))
    rewritten = rewrite_bins(
        latest,
        plan.bins,
        planned_version=plan.version,
        operation=_operation(plan, auto=auto),
        compression=compression,
        run=run,
    )
    return RewriteResult(
        committed=rewritten.committed,
        metrics=_bin_metrics(
            plan,
            rewritten.adds,
            deletion_vectors=rewritten.deletion_vectors,
            deleted_rows=rewritten.deleted_rows,
        ),
        rows=rewritten.rows,
    )


def _operation(plan: CompactionPlan | PurgePlan, *, auto: bool) -> Operation:
    predicate = [plan.predicate] if plan.predicate else []
    if isinstance(plan, PurgePlan):
        return Operation(name="REORG", parameters={"predicate": predicate, "applyPurge": True})
    parameters = {"predicate": predicate, "zOrderBy": [], "clusterBy": [], "auto": auto}
    return Operation(name="OPTIMIZE", parameters=parameters)


def _bin_metrics(
    plan: CompactionPlan | PurgePlan,
    adds: Sequence[AddFile],
    *,
    deletion_vectors: int = 0,
    deleted_rows: int = 0,
) -> dict[str, Any]:
    metrics = file_metrics(
        [file.size_bytes for item in plan.bins for file in item.files],
        adds,
        considered_files=plan.considered_files,
        partitions=plan.predicted()["partitions"],
        bins=len(plan.bins),
    )
    if isinstance(plan, CompactionPlan):
        return metrics
    return {
        **metrics,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": deletion_vectors,
            "numDeletionVectorRowsRemoved": deleted_rows,
        },
    }
