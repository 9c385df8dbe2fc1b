"""Rewrites a plan's groups on an executor, each group in memory or on disk, depending on its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from delta_core.execution.executor import Executor, JsonObject, TaskFunction
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.limits import available_memory_bytes
from delta_core.maintenance.clustering.curve import Shape, fit_curve
from delta_core.maintenance.clustering.external import (
    file_ranges,
    order_schema,
    range_cuts,
    runs_of,
    sample_files,
    spill_runs,
    write_ranges,
)
from delta_core.maintenance.clustering.groups import ClusteringGroup
from delta_core.maintenance.clustering.in_memory import ROWS_SHARE, cluster_in_memory, in_memory_task
from delta_core.maintenance.clustering.sample import Sampler
from delta_core.maintenance.clustering.spill import local_spill, shared_spill
from delta_core.maintenance.clustering.values import column_at
from delta_core.maintenance.rewriting.layout import FileLayout
from delta_core.maintenance.rewriting.planned_files import LiveSources, delete_unused
from delta_core.run import Run
from delta_core.storage.log_store import LogStore

SPARK_TASK_MEMORY_BYTES: Final = 512 << 20
"""Default memory of a task on Spark. The memory of a Spark executor's Python process is often no larger."""

_EXPANSION = 4
_RANGES_PER_FILE = 4
_MOST_RANGES = 4096
_TASKS_PER_WORKER = 4
_SPARK_PART_BYTES = 128 << 20
_SMALLEST_PART_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """The result of rewriting one group.

    Attributes:
        files: new files in the order of the curve: `path`, `size_bytes`, `modification_time_ms`, `stats`,
            `rows`, and the first and last key in `z_first` and `z_last`.
        curve: as `Curve.to_json` returns it.
        spilled: True when the rows were sorted on disk.
    """

    group: ClusteringGroup
    files: tuple[JsonObject, ...]
    curve: JsonObject
    spilled: bool


class GroupRunner:
    """Rewrites groups of files, each with its rows sorted along a curve.

    Args:
        store: the table's store.
        layout: the result of `layout_fields`.
        sources: the groups' files as in the log.
        columns: columns to sort by, as paths of physical names.
        shape: Z-order or Hilbert curve.
        seed: seed of the random samples.
        memory_limit_bytes: limit for the rows in memory at a time, of this process or, on Spark, of each
            task. Half of the available memory, or 512 MiB on Spark, when None.
        run: the surroundings. Its progress receives `data.writing`.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        layout: Mapping[str, Any],
        sources: LiveSources,
        columns: Sequence[Sequence[str]],
        shape: Shape,
        seed: int,
        memory_limit_bytes: int | None,
        run: Run,
    ) -> None:
        self._store = store
        self._layout = layout
        self._sources = sources
        self._columns = [list(path) for path in columns]
        self._shape: Shape = shape
        self._seed = seed
        self._progress = run.progress
        self._executor: Executor = InlineExecutor() if run.executor is None else run.executor
        inline = isinstance(self._executor, InlineExecutor)
        self._workers = self._executor.max_workers if isinstance(self._executor, InlineExecutor) else 1
        default = available_memory_bytes() // 2 if inline else SPARK_TASK_MEMORY_BYTES
        self._memory = max(self._workers, default if memory_limit_bytes is None else memory_limit_bytes)
        self._inline = inline
        self._written: list[JsonObject] = []
        self._total = 0

    def rewrite(self, groups: Sequence[ClusteringGroup]) -> list[GroupResult]:
        """Rewrite every group; results in the groups' order. On an error, the new files are deleted."""
        self._total = sum(group.num_files for group in groups)
        self._report_progress()
        results: dict[int, GroupResult] = {}
        try:
            share = self._memory // self._workers
            small = [i for i, group in enumerate(groups) if self._fits(group, share)]
            if len(small) >= self._workers or not self._inline:
                self._in_memory(groups, small, results, memory_bytes=share, threads=1)
            for number, group in enumerate(groups):
                if self._inline and number not in results and self._fits(group, self._memory):
                    self._in_memory(
                        groups, [number], results, memory_bytes=self._memory, threads=self._workers
                    )
                if number not in results:
                    results[number] = self._external(group)
        except BaseException:
            delete_unused(self._store, self._written)
            raise
        return [results[number] for number in range(len(groups))]

    def _fits(self, group: ClusteringGroup, memory_bytes: int) -> bool:
        """Estimate whether the rows fit into memory. The task returns `too_large` if they do not."""
        return group.size_bytes * _EXPANSION <= memory_bytes * ROWS_SHARE

    def _in_memory(
        self,
        groups: Sequence[ClusteringGroup],
        numbers: Sequence[int],
        results: dict[int, GroupResult],
        *,
        memory_bytes: int,
        threads: int,
    ) -> None:
        tasks = [
            in_memory_task(
                self._layout,
                files=self._sources.of_paths(groups[number].files),
                partition_values=groups[number].partition_values,
                columns=self._columns,
                shape=self._shape,
                num_files=groups[number].num_files,
                seed=self._seed,
                memory_bytes=memory_bytes,
                threads=threads,
            )
            for number in numbers
        ]
        for index, result in self._executor.map(cluster_in_memory, tasks):
            if result.get("too_large"):
                continue
            number = numbers[index]
            self._record(result["files"])
            results[number] = GroupResult(
                group=groups[number], files=tuple(result["files"]), curve=result["curve"], spilled=False
            )

    def _external(self, group: ClusteringGroup) -> GroupResult:
        files = self._sources.of_paths(group.files)
        memory = self._memory // self._workers
        layout = FileLayout.from_task(self._layout)
        encoding = layout.encoding_of(files[0].path)
        common = {
            **self._layout,
            "columns": self._columns,
            "seed": self._seed,
            "memory_bytes": memory,
            "partition_values": dict(group.partition_values),
            "encoding": encoding.to_json(),
        }
        parts = self._parts([file.to_json() for file in files], group.size_bytes)
        sampler = Sampler([self._seed])
        for sampled in self._map(sample_files, [{**common, "files": p} for p in parts]):
            sampler.merge(sampled["sample"])
        schema = order_schema(layout, self._columns)
        empty = schema.empty_table()
        floating = [pa.types.is_floating(column_at(empty, path).type) for path in self._columns]
        curve = fit_curve(self._columns, sampler.columns(), floating=floating, shape=self._shape)
        windows = _EXPANSION * group.size_bytes // max(memory, _SMALLEST_PART_BYTES)
        num_ranges = _RANGES_PER_FILE * max(group.num_files, windows)
        cuts = range_cuts(curve, sampler, max(1, min(_MOST_RANGES, num_ranges)))
        common |= {"curve": curve.to_json(), "cuts": cuts}
        with self._spill() as place:
            spilling = [{**common, "files": p, "place": place} for p in parts]
            runs = [run for result in self._map(spill_runs, spilling) for run in result["runs"]]
            ranges = file_ranges(runs, len(cuts) + 1, group.num_files)
            del common["curve"], common["cuts"]
            writing = [
                {**common, "place": place, "ranges": [first, end], "runs": runs_of(runs, first, end)}
                for first, end in ranges
            ]
            written = self._map(write_ranges, writing, record=True)
        return GroupResult(group=group, files=tuple(written), curve=curve.to_json(), spilled=True)

    def _map(
        self, function: TaskFunction, tasks: Sequence[dict[str, Any]], *, record: bool = False
    ) -> list[JsonObject]:
        """The results in the tasks' order; each task receives its number as `part`."""
        numbered = [{**task, "part": number} for number, task in enumerate(tasks)]
        results: dict[int, JsonObject] = {}
        for index, result in self._executor.map(function, numbered):
            results[index] = result
            if record:
                self._record([result])
        return [results[index] for index in range(len(tasks))]

    def _parts(self, files: Sequence[JsonObject], size_bytes: int) -> list[list[JsonObject]]:
        """The files in consecutive batches of about the same number of files, one batch per task."""
        if self._inline:
            count = self._workers * _TASKS_PER_WORKER if self._workers > 1 else 1
            count = min(count, max(1, size_bytes // _SMALLEST_PART_BYTES))
        else:
            count = max(1, -(-size_bytes // _SPARK_PART_BYTES))
        count = min(count, len(files))
        edges = [len(files) * number // count for number in range(count + 1)]
        return [list(files[a:b]) for a, b in pairwise(edges)]

    def _spill(self) -> AbstractContextManager[dict[str, Any]]:
        return local_spill() if self._inline else shared_spill(self._store)

    def _record(self, files: Sequence[JsonObject]) -> None:
        self._written.extend(files)
        self._report_progress()

    def _report_progress(self) -> None:
        done = len(self._written)
        self._progress.emit("data.writing", done=done, total=max(done, self._total))
