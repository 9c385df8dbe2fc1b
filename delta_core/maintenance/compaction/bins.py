"""Rewrites bins of files and commits the new files: the same rows in other files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from delta_core.actions import AddFile, Metadata
from delta_core.data.compression import Compression
from delta_core.dml.post_commit import commit_owned
from delta_core.execution.executor import JsonObject
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.limits import available_memory_bytes, workers_for
from delta_core.maintenance.compaction.bin_plan import BinPlan, CompactionBin
from delta_core.maintenance.compaction.metrics import file_metrics, operation_metrics
from delta_core.maintenance.compaction.task import TASK_MEMORY_BYTES, compaction_task, rewrite_bin
from delta_core.maintenance.rewriting.layout import layout_fields
from delta_core.maintenance.rewriting.planned_files import (
    LiveSources,
    delete_unused,
    require_same_table,
    still_live,
)
from delta_core.maintenance.rewriting.writing import added_file
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.task_stores import share_with_tasks
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.owned_files import OwnedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The operation that `commitInfo` records.

    Attributes:
        name: `operation`, as delta-spark names it.
        parameters: `operationParameters`, as delta-spark writes them.
    """

    name: str
    parameters: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinResult:
    """The result of a compaction or of a purge.

    Attributes:
        committed: the commit; None when there was nothing to do.
        metrics: as delta-spark returns them (numFilesAdded, filesAdded{min,max,avg,...}, ...).
        rows: number of rewritten rows, without deleted rows.
    """

    committed: Committed | None
    metrics: Mapping[str, Any] = field(hash=False)
    rows: int = 0

    @property
    def version(self) -> int | None:
        """The committed version; None when this call committed nothing."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version


def refresh_for(snapshot: Snapshot, plan: BinPlan, *, operation: str) -> Snapshot:
    """The newest version, after checks that the plan is for this table and that the table can be rewritten.

    Raises:
        MaintenanceError: the plan is for another table.
        UnsupportedTableFeatureError: the table needs a feature that this writer does not support.
    """
    latest = snapshot.refresh()
    require_same_table(latest, plan.table_id)
    latest.require_readable(operation=operation, through_scan=True)
    latest.require_writable(writer_kind=WriterKind.REWRITE, operation=operation)
    return latest


def metrics_for(plan: BinPlan, adds: Sequence[AddFile]) -> dict[str, Any]:
    """The metrics of a plan and its new files."""
    return file_metrics(
        [file.size_bytes for item in plan.bins for file in item.files],
        adds,
        considered_files=plan.considered_files,
        partitions=plan.predicted()["partitions"],
        bins=len(plan.bins),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenBins:
    """The result of rewriting bins.

    Attributes:
        committed: the commit.
        adds: the new files; a bin whose rows were all deleted has no new file.
        rows: number of rows in the new files.
        deletion_vectors: number of old files that had a deletion vector.
        deleted_rows: number of rows that these deletion vectors marked as deleted.
    """

    committed: Committed
    adds: tuple[AddFile, ...]
    rows: int
    deletion_vectors: int
    deleted_rows: int


def rewrite_bins(
    latest: Snapshot,
    bins: Sequence[CompactionBin],
    *,
    planned_version: int,
    operation: Operation,
    compression: Compression | None = None,
    definition: Metadata | None = None,
    run: Run = DEFAULT_RUN,
) -> RewrittenBins:
    """Write each bin's rows as one file and commit, if all the bins' files are live.

    If the table has row tracking, rows keep their row ids and row commit versions. A new file keeps the tags
    and the clustering provider that all of the bin's files share. Readers of the change data feed see no
    change. When the commit fails, the new files are deleted, unless the outcome of the commit is unknown.

    Args:
        latest: the newest version, after a check that this writer can rewrite the table's files.
        bins: at least one.
        planned_version: the version that the bins were chosen from, for error messages.
        operation: the operation that `commitInfo` records.
        compression: the Parquet codec of the new files; the table's codec when None.
        definition: new metadata of the table, with another layout of files, to commit with the files. The
            bins must then hold all live files, with partition values by the names of the new metadata. The
            commit is not rebased: a file that another commit added would have the old layout.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        ConcurrentDeleteDeleteError: a file is no longer live.
        ConcurrentModificationError: another commit conflicts.
        MaxCommitAttemptsError: `definition` is set, and another writer committed first.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    planned = {file.path: file.size_bytes for item in bins for file in item.files}
    removed = still_live(latest, planned, planned_version=planned_version)
    sources = LiveSources.of(removed, store=latest.store, access=run.access)
    layout = layout_fields(latest, access=run.access, compression=compression, definition=definition)
    with share_with_tasks(*run.allowed_roots, latest.store):
        results = _rewrite(latest, bins, layout, sources, _within_memory(run, len(bins)))
    delete_unused(latest.store, [result for result in results if not result["rows"]])
    adds = []
    for result, item in zip(results, bins, strict=True):
        if result["rows"]:
            common = sources.common(item.files)
            adds.append(
                added_file(
                    result,
                    item.partition_values,
                    tags=common.tags,
                    clustering_provider=common.clustering_provider,
                )
            )
    rows = sum(result["rows"] for result in results)
    run.progress.emit("stats.collected", files=len(adds), rows=rows)
    owned = OwnedFiles(store=latest.store).with_data(adds)
    with owned.deleted_on_error():
        transaction = (run if definition is None else run.only_next()).begin(
            latest,
            operation=operation.name,
            writer_kind=WriterKind.REWRITE,
            operation_parameters=operation.parameters,
            isolation=None if definition is None else IsolationLevel.SERIALIZABLE,
        )
        transaction.preserve_rows(True)
        if definition is not None:
            transaction.read_predicate(None).add(definition)
        removes = remove_actions(removed, deletion_timestamp_ms=run.now_ms(), data_change=False)
        transaction.add(*removes, *adds)
        sizes = [file.size_bytes for item in bins for file in item.files]
        transaction.set_metrics(operation_metrics(sizes, adds, deletion_vectors=sources.num_deletion_vectors))
    return RewrittenBins(
        committed=commit_owned(transaction, owned, run.progress),
        adds=tuple(adds),
        rows=rows,
        deletion_vectors=sources.num_deletion_vectors,
        deleted_rows=sources.num_deleted_rows,
    )


def _rewrite(
    latest: Snapshot, bins: Sequence[CompactionBin], layout: Mapping[str, Any], sources: LiveSources, run: Run
) -> list[JsonObject]:
    store = latest.store
    executor = run.executor or InlineExecutor()
    tasks = [
        compaction_task(
            layout,
            files=sources.of_paths(item.files),
            partition_values=item.partition_values,
            threads=executor.cores_per_task(len(bins)),
        )
        for item in bins
    ]
    results: dict[int, JsonObject] = {}
    run.progress.emit("data.writing", done=0, total=len(tasks), bytes=sum(item.size_bytes for item in bins))
    try:
        for index, result in executor.map(rewrite_bin, tasks):
            results[index] = result
            run.progress.emit("data.writing", done=len(results), total=len(tasks))
    except BaseException:
        delete_unused(store, results.values())
        raise
    run.progress.emit("data.written", files=len(results))
    return [results[index] for index in range(len(tasks))]


def _within_memory(run: Run, tasks: int) -> Run:
    """The run. An `InlineExecutor` is limited to the number of threads that the memory allows."""
    chosen = InlineExecutor() if run.executor is None else run.executor
    if type(chosen) is not InlineExecutor:
        return run
    workers = workers_for(
        tasks=tasks,
        task_memory_bytes=TASK_MEMORY_BYTES,
        memory_bytes=available_memory_bytes(),
        cpus=chosen.max_workers,
    )
    return replace(run, executor=InlineExecutor(workers))
