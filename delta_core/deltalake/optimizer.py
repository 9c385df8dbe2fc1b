"""`DeltaTable.optimize` with the calls of the `deltalake` package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from delta_core import table as core
from delta_core.deltalake._util import with_positional
from delta_core.deltalake.exceptions import compatible_class
from delta_core.deltalake.predicates import Filter, predicate_of
from delta_core.deltalake.results import optimize_metrics
from delta_core.deltalake.transaction import CommitArgument, HookArgument, core_properties
from delta_core.deltalake.writer_properties import WriterProperties, parquet_options
from delta_core.errors import ConfigurationError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.apply_rewrite import RewritePlan, apply_rewrite
from delta_core.run import Run

_HOOK_FIRST = ("post_commithook_properties", "commit_properties")


@compatible_class
class TableOptimizer:
    """Operations that rewrite files; no row changes.

    With `min_commit_interval=0` each partition is a commit of its own. Otherwise the commit happens once, at
    the end. `max_temp_directory_size` has no effect.
    """

    def __init__(self, table: core.DeltaTable) -> None:
        """Create the namespace of an open table of `delta_core`. Makes no request."""
        self.table = table

    @with_positional(*_HOOK_FIRST)
    def compact(
        self,
        partition_filters: Filter | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> dict[str, Any]:
        """Rewrite small files as fewer large files.

        Args:
            partition_filters: the partitions, as a list of tuples; all when None.
            target_size: the size of a new file in bytes; the table's target when None.
            max_concurrent_tasks: the number of files that are written at the same time.
            max_spill_size, max_temp_directory_size: no effect: rows are copied in bounded memory.
            min_commit_interval: see the class.
            writer_properties: the encoding of new files.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.

        Returns:
            The metrics.
        """
        run = self._run(
            max_concurrent_tasks, commit_properties, post_commithook_properties, writer_properties
        )
        plan = self.table.optimize.plan(predicate_of(partition_filters), target_size_bytes=_size(target_size))
        parts = [plan]
        if _commits_each_partition(min_commit_interval):
            values = {tuple(sorted(item.partition_values.items())) for item in plan.bins}
            parts = [
                replace(plan, bins=tuple(one for one in plan.bins if _is_in(one.partition_values, part)))
                for part in sorted(values, key=repr)
            ]
        spans = max((len(item.files) for item in plan.bins), default=0)
        return self._rewritten(parts or [plan], run, spans)

    @with_positional(*_HOOK_FIRST)
    def z_order(
        self,
        columns: Iterable[str],
        partition_filters: Filter | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> dict[str, Any]:
        """Rewrite files so that rows with similar values of some columns are in the same files.

        Args:
            columns: the columns to sort by.
            partition_filters: the partitions, as a list of tuples; all when None.
            target_size: the size of a new file in bytes; the table's target when None.
            max_concurrent_tasks: the number of files that are written at the same time.
            max_spill_size: the limit for rows in memory, in bytes. More rows are sorted on disk.
            max_temp_directory_size, min_commit_interval: see the class.
            writer_properties: the encoding of new files.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.

        Returns:
            The metrics.
        """
        run = self._run(
            max_concurrent_tasks, commit_properties, post_commithook_properties, writer_properties
        )
        plan = self.table.optimize.plan_z_order(
            [columns] if isinstance(columns, str) else list(columns),
            predicate_of(partition_filters),
            target_size_bytes=_size(target_size),
            full=True,
        )
        parts = [plan]
        if _commits_each_partition(min_commit_interval):
            parts = [replace(plan, groups=(group,)) for group in plan.groups]
        spans = max((len(group.files) for group in plan.groups), default=0)
        return self._rewritten(parts or [plan], run, spans, max_spill_size)

    def _run(
        self,
        tasks: int | None,
        commit: CommitArgument,
        hooks: HookArgument,
        writer: WriterProperties | None,
    ) -> Run:
        executor = None if tasks is None else InlineExecutor(tasks)
        run = self.table.new_run(core_properties(commit, hooks), executor)
        return replace(run, parquet=parquet_options(writer))

    def _rewritten(
        self, plans: Sequence[RewritePlan], run: Run, spans: int, memory_limit_bytes: int | None = None
    ) -> dict[str, Any]:
        """Execute the plans, one commit each, and return the metrics of all."""
        metrics: dict[str, Any] = {}
        for plan in plans:
            result = apply_rewrite(self.table.snapshot, plan, memory_limit_bytes=memory_limit_bytes, run=run)
            self.table.advance_to(result.committed)
            metrics = _united(metrics, result.metrics) if metrics else dict(result.metrics)
        return {**optimize_metrics(metrics), "maxBinSpanFiles": spans}


def _size(target_size: int | None) -> int | None:
    largest = 2**63 - 1
    if isinstance(target_size, int) and not 1 <= target_size <= largest:
        raise ConfigurationError(
            f"target_file_size must be between 1 and {largest}",
            cause=f"It is {target_size}.",
            fix="Pass a number of bytes such as 134217728.",
        )
    return target_size


def _commits_each_partition(interval: int | timedelta | None) -> bool:
    """Whether the interval is 0, for which `deltalake` commits each partition on its own."""
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
    return seconds == 0


def _is_in(values: Mapping[str, str | None], partition: tuple[tuple[str, str | None], ...]) -> bool:
    return tuple(sorted(values.items())) == partition


_EITHER: Mapping[str, Callable[[list[Any]], Any]] = {"min": min, "max": max}


def _united(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of two commits of one plan: sums, apart from what describes the whole plan."""
    united = dict(first)
    for name, value in second.items():
        before = first.get(name)
        if name in ("totalConsideredFiles", "preserveInsertionOrder", "partitionsOptimized"):
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            united[name] = _united(before, value)
        elif name in _EITHER:
            known = [one for one in (before, value) if one is not None]
            united[name] = _EITHER[name](known) if known else None
        elif isinstance(value, int | float) and not isinstance(value, bool):
            united[name] = (before or 0) + value
    if "totalSize" in united and "avg" in united:
        united["avg"] = united["totalSize"] / united["totalFiles"] if united["totalFiles"] else 0.0
    if "totalFilesSkipped" in united:
        united["totalFilesSkipped"] = united["totalConsideredFiles"] - united["numFilesRemoved"]
    return united
