"""Carrying a Z-order plan out: rewrite, then one commit that changes no data."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.compression import Compression
from delta_core.errors import ConfigurationError
from delta_core.execution.executor import Executor
from delta_core.execution.reporter import SILENT, ProgressReporter
from delta_core.maintenance.clustering.columns import clustering_columns, cube_tags, refuse_clustered
from delta_core.maintenance.clustering.execute import GroupResult, GroupRunner
from delta_core.maintenance.clustering.plan import ZOrderPlan
from delta_core.maintenance.commit import commit_with_events
from delta_core.maintenance.compaction.metrics import file_figures, operation_metrics
from delta_core.maintenance.rewriting.layout import layout_fields
from delta_core.maintenance.rewriting.planned_files import (
    LiveSources,
    delete_unused,
    require_same_table,
    still_live,
)
from delta_core.maintenance.rewriting.writing import added_file
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.surface import Surface
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import Committed, raise_for_result
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrderResult:
    """What a Z-order did.

    Attributes:
        committed: the commit; None when there was nothing to do.
        metrics: as delta-spark's OPTIMIZE ZORDER returns them (numFilesAdded, zOrderStats, ...).
        rows: rows that were rewritten.
        groups: each partition with its new files and the curve that they follow.
    """

    committed: Committed | None
    metrics: Mapping[str, Any] = field(hash=False)
    rows: int = 0
    groups: tuple[GroupResult, ...] = field(default=(), hash=False)

    @property
    def version(self) -> int | None:
        """The version that was committed; None when there was nothing to do."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version


def apply_z_order(
    snapshot: Snapshot,
    plan: ZOrderPlan,
    *,
    memory_limit_bytes: int | None = None,
    executor: Executor | None = None,
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    progress: ProgressReporter = SILENT,
    compression: Compression | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> ZOrderResult:
    """Rewrite the plan's files in Z-order and commit, if every one is still in the newest version.

    Concurrent appends do not disturb it. An empty plan commits nothing. When the commit does not
    happen, the new files are deleted unless it cannot be told whether it happened.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_z_order`, perhaps in another process.
        memory_limit_bytes: for the rows in memory at a time: of this process or, on Spark, of each task. A
            partition that needs more goes over disk: below `TMPDIR`, or on Spark below the table. Half of
            the available memory, or 512 MiB on Spark, when None. The compressed columns of one row group
            of the old files must fit besides.
        executor: maps the rewriting; threads of this process when None.
        properties: provenance, idempotency key and limits of the commit.
        progress: receives `data.writing` for the new files and the commit's events.
        compression: the Parquet codec of the new files; the table's when None.

    Raises:
        MaintenanceError: the plan is for another table.
        ConfigurationError: by now the table cannot be ordered by these columns.
        ConcurrentDeleteDeleteError: a planned file is no longer live.
        ConcurrentModificationError: another commit conflicts.
        UnsupportedTableFeatureError: the table needs something that this writer does not do.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
    """
    if memory_limit_bytes is not None and memory_limit_bytes < 1:
        raise ConfigurationError(
            f"{memory_limit_bytes} bytes of memory cannot hold a row", fix="give a positive memory limit"
        )
    latest = snapshot.refresh()
    require_same_table(latest, plan.table_id)
    latest.require_readable(operation="put the table into Z-order", through_scan=True)
    latest.require_writable(surface=Surface.REWRITE, operation="put the table into Z-order")
    refuse_clustered(latest)
    ordered_by = clustering_columns(latest, plan.columns)
    if plan.is_empty:
        return ZOrderResult(committed=None, metrics=_figures(plan, []))
    planned = {file.path: file.size_bytes for group in plan.groups for file in group.files}
    removed = still_live(latest, planned, planned_version=plan.version)
    sources = LiveSources.of(removed, root_uri=latest.store.uri)
    runner = GroupRunner(
        store=latest.store,
        layout=layout_fields(latest, compression=compression),
        sources=sources,
        columns=[latest.column_mapping.physical_name(field) for field in ordered_by],
        seed=plan.version,
        executor=executor,
        memory_limit_bytes=memory_limit_bytes,
        progress=progress,
    )
    results = runner.run(plan.groups)
    delete_unused(latest.store, [file for result in results for file in result.files if not file["rows"]])
    adds = [add for result in results for add in _added(result, plan.columns, sources)]
    rows = sum(int(file["rows"]) for result in results for file in result.files)
    progress.emit("data.written", files=len(adds))
    progress.emit("stats.collected", files=len(adds), rows=rows)
    transaction = Transaction.begin(
        latest,
        operation="OPTIMIZE",
        surface=Surface.REWRITE,
        operation_parameters={
            "predicate": [plan.predicate] if plan.predicate else [],
            "zOrderBy": list(plan.columns),
            "clusterBy": [],
            "auto": False,
        },
        properties=properties,
        observer=observer,
        clock=clock,
    )
    transaction.preserve_rows(True)
    transaction.add(*remove_actions(removed, deletion_timestamp_ms=clock.now_ms(), data_change=False), *adds)
    transaction.set_metrics(
        operation_metrics(list(planned.values()), adds, deletion_vectors=sources.num_deletion_vectors)
    )
    outcome = commit_with_events(transaction, progress)
    OwnedFiles(store=latest.store).with_data(adds).discard(outcome)
    return ZOrderResult(
        committed=raise_for_result(outcome), metrics=_figures(plan, adds), rows=rows, groups=tuple(results)
    )


def _added(result: GroupResult, columns: Sequence[str], sources: LiveSources) -> list[AddFile]:
    tags = {**sources.common(result.group.files).tags, **cube_tags(columns, str(uuid.uuid4()))}
    return [
        added_file(file, result.group.partition_values, tags=tags) for file in result.files if file["rows"]
    ]


def _figures(plan: ZOrderPlan, adds: Sequence[AddFile]) -> dict[str, Any]:
    removed = [file.size_bytes for group in plan.groups for file in group.files]
    ordered = {
        "num": sum(group.ordered_files for group in plan.groups),
        "size": sum(group.ordered_bytes for group in plan.groups),
    }
    return {
        **file_figures(
            removed,
            adds,
            considered_files=plan.considered_files,
            partitions=len(plan.groups),
            bins=len(plan.groups),
            preserves_order=False,
        ),
        "zOrderStats": {
            "strategyName": "all",
            "inputCubeFiles": ordered,
            "inputOtherFiles": {
                "num": len(removed) - ordered["num"],
                "size": sum(removed) - ordered["size"],
            },
            "inputNumCubes": sum(group.cubes for group in plan.groups),
            "mergedFiles": {"num": len(removed), "size": sum(removed)},
            "numOutputCubes": len(plan.groups),
        },
    }
