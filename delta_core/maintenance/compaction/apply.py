"""Carrying a compaction plan out: rewrite, then one commit that changes no data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.parquet_writer import Compression
from delta_core.execution.executor import Executor, JsonObject
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.limits import available_memory_bytes, workers_for
from delta_core.execution.reporter import SILENT, ProgressReporter
from delta_core.maintenance.commit import commit_with_events
from delta_core.maintenance.compaction.metrics import file_figures, operation_metrics
from delta_core.maintenance.compaction.plan import CompactionPlan
from delta_core.maintenance.compaction.task import TASK_MEMORY_BYTES, compaction_task, rewrite_bin
from delta_core.maintenance.rewriting.layout import layout_fields
from delta_core.maintenance.rewriting.planned_files import delete_unused, require_same_table, still_live
from delta_core.maintenance.rewriting.writing import added_file
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.lent import lent_to_tasks
from delta_core.storage.uri import resolve_data_path
from delta_core.table_features.surface import Surface
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import Committed, raise_for_result
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """What a compaction did.

    Attributes:
        committed: the commit; None when there was nothing to do.
        metrics: as delta-spark's OPTIMIZE returns them (numFilesAdded, filesAdded{min,max,avg,...}, ...).
        rows: rows that were rewritten.
    """

    committed: Committed | None
    metrics: Mapping[str, Any] = field(hash=False)
    rows: int = 0

    @property
    def version(self) -> int | None:
        """The version that was committed; None when there was nothing to do."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version


def apply_compaction(
    snapshot: Snapshot,
    plan: CompactionPlan,
    *,
    executor: Executor | None = None,
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    progress: ProgressReporter = SILENT,
    compression: Compression = "snappy",
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> CompactionResult:
    """Rewrite the plan's files and commit, if every one of them is still in the newest version.

    Concurrent appends do not disturb it. An empty plan commits nothing. When the commit does not
    happen, the new files are deleted unless it cannot be told whether it happened.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_compaction`, perhaps in another process.
        executor: maps the rewriting of bins; threads of this process when None.
        properties: provenance, idempotency key and limits of the commit.
        progress: receives `data.writing` for each bin and the commit's events.
        compression: the Parquet codec of the new files.

    Raises:
        MaintenanceError: the plan is for another table.
        ConcurrentDeleteDeleteError: a planned file is no longer live.
        ConcurrentModificationError: another commit conflicts.
        UnsupportedTableFeatureError: the table needs something that this writer does not do.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
    """
    latest = snapshot.refresh()
    require_same_table(latest, plan.table_id)
    latest.require_readable(operation="compact the table")
    latest.require_writable(surface=Surface.REWRITE, operation="compact the table")
    if plan.is_empty:
        return CompactionResult(committed=None, metrics=_figures(plan, []))
    planned = {file.path: file.size_bytes for item in plan.bins for file in item.files}
    removed = still_live(latest, planned, planned_version=plan.version)
    results = _rewrite(latest, plan, _within_memory(executor, plan), compression, progress)
    adds = [
        added_file(result, item.partition_values) for result, item in zip(results, plan.bins, strict=True)
    ]
    progress.emit("stats.collected", files=len(adds), rows=sum(result["rows"] for result in results))
    transaction = Transaction.begin(
        latest,
        operation="OPTIMIZE",
        surface=Surface.REWRITE,
        operation_parameters={
            "predicate": [plan.predicate] if plan.predicate else [],
            "zOrderBy": [],
            "clusterBy": [],
            "auto": False,
        },
        properties=properties,
        observer=observer,
        clock=clock,
    )
    transaction.add(*remove_actions(removed, deletion_timestamp_ms=clock.now_ms(), data_change=False), *adds)
    transaction.set_metrics(operation_metrics(_sizes(plan), adds))
    outcome = commit_with_events(transaction, progress)
    OwnedFiles(store=latest.store).with_data(adds).discard(outcome)
    return CompactionResult(
        committed=raise_for_result(outcome),
        metrics=_figures(plan, adds),
        rows=sum(result["rows"] for result in results),
    )


def _rewrite(
    latest: Snapshot,
    plan: CompactionPlan,
    executor: Executor,
    compression: Compression,
    progress: ProgressReporter,
) -> list[JsonObject]:
    store = latest.store
    layout = layout_fields(
        table_uri=store.uri,
        schema_string=latest.metadata.schema_string,
        partition_columns=latest.partition_columns,
        configuration=latest.metadata.configuration,
        compression=compression,
    )
    tasks = [
        compaction_task(
            layout,
            paths=[resolve_data_path(file.path, root_uri=store.uri) for file in item.files],
            partition_values=item.partition_values,
            threads=executor.cores_per_task(len(plan.bins)),
        )
        for item in plan.bins
    ]
    results: dict[int, JsonObject] = {}
    progress.emit("data.writing", done=0, total=len(tasks), bytes=plan.total_bytes)
    try:
        with lent_to_tasks(store):
            for index, result in executor.map(rewrite_bin, tasks):
                results[index] = result
                progress.emit("data.writing", done=len(results), total=len(tasks))
    except BaseException:
        delete_unused(store, results.values())
        raise
    progress.emit("data.written", files=len(results))
    return [results[index] for index in range(len(tasks))]


def _within_memory(executor: Executor | None, plan: CompactionPlan) -> Executor:
    """The executor; threads of this process only as many as its memory can take."""
    threads = InlineExecutor() if executor is None else executor
    if type(threads) is not InlineExecutor:
        return threads
    return InlineExecutor(
        workers_for(
            tasks=len(plan.bins),
            task_memory_bytes=TASK_MEMORY_BYTES,
            memory_bytes=available_memory_bytes(),
            cpus=threads.max_workers,
        )
    )


def _sizes(plan: CompactionPlan) -> list[int]:
    return [file.size_bytes for item in plan.bins for file in item.files]


def _figures(plan: CompactionPlan, adds: Sequence[AddFile]) -> dict[str, Any]:
    return file_figures(
        _sizes(plan),
        adds,
        considered_files=plan.considered_files,
        partitions=plan.predicted()["partitions"],
        bins=len(plan.bins),
    )
