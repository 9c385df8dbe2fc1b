"""Rewrites bins of files: the rows of each bin in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from delta_core.actions import Metadata
from delta_core.data.file_writer import Compression
from delta_core.execution.executor import Executor, JsonObject
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.limits import available_memory_bytes, workers_for
from delta_core.maintenance.compaction.bin_plan import CompactionBin
from delta_core.maintenance.compaction.task import TASK_MEMORY_BYTES, compaction_task, rewrite_bin
from delta_core.maintenance.rewriting.planned_files import LiveSources, delete_unused
from delta_core.maintenance.rewriting.rewrite import NewFiles, Operation, Rewritten, rewrite
from delta_core.maintenance.rewriting.writing import added_file
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.row_map import MovedRows


def rewrite_bins(
    latest: Snapshot,
    bins: Sequence[CompactionBin],
    *,
    planned_version: int,
    operation: Operation,
    compression: Compression | None = None,
    definition: Metadata | None = None,
    run: Run,
) -> Rewritten:
    """Write each bin's rows as one file and commit, if all the bins' files are live.

    A new file keeps the tags and the clustering provider that all of the bin's files share. A bin whose rows
    were all deleted has no new file. Arguments and errors are those of `rewrite`. There must be a bin. With
    `definition`, the bins have partition values by the names of the new metadata.
    """

    def write(layout: Mapping[str, Any], sources: LiveSources) -> NewFiles:
        return _written(latest, bins, layout, sources, run)

    files = [file for item in bins for file in item.files]
    return rewrite(
        latest,
        files,
        write,
        planned_version=planned_version,
        operation=operation,
        compression=compression,
        definition=definition,
        run=run,
    )


def _written(
    latest: Snapshot,
    bins: Sequence[CompactionBin],
    layout: Mapping[str, Any],
    sources: LiveSources,
    run: Run,
) -> NewFiles:
    results = _results(latest, bins, layout, sources, run)
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
    return NewFiles(
        adds=adds,
        rows=sum(result["rows"] for result in results),
        moved=[moved for result, item in zip(results, bins, strict=True) for moved in _moved(result, item)],
    )


def _moved(result: JsonObject, item: CompactionBin) -> Iterator[MovedRows]:
    first_row = 0
    for file, count in zip(item.files, result["source_rows"], strict=True):
        yield MovedRows(path=file.path, target=result["path"], first_row=first_row, count=count)
        first_row += count


def _results(
    latest: Snapshot,
    bins: Sequence[CompactionBin],
    layout: Mapping[str, Any],
    sources: LiveSources,
    run: Run,
) -> list[JsonObject]:
    executor = _executor(run, len(bins))
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
    size_bytes = sum(item.size_bytes for item in bins)
    run.progress.emit("data.writing", done=0, total=len(tasks), bytes=size_bytes)
    try:
        for index, result in executor.map(rewrite_bin, tasks):
            results[index] = result
            run.progress.emit("data.writing", done=len(results), total=len(tasks))
    except BaseException:
        delete_unused(latest.store, results.values())
        raise
    run.progress.emit("data.written", files=len(results))
    return [results[index] for index in range(len(tasks))]


def _executor(run: Run, tasks: int) -> Executor:
    """The run's executor. An `InlineExecutor` gets at most the number of threads that the memory allows."""
    chosen = InlineExecutor() if run.executor is None else run.executor
    if type(chosen) is not InlineExecutor:
        return chosen
    workers = workers_for(
        tasks=tasks,
        task_memory_bytes=TASK_MEMORY_BYTES,
        memory_bytes=available_memory_bytes(),
        cpus=chosen.max_workers,
    )
    return InlineExecutor(workers)
