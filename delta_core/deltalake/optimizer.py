"""`DeltaTable.optimize` with the calls of the `deltalake` package."""

from __future__ import annotations

from collections.abc import Iterable
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
from delta_core.execution.executor import Executor
from delta_core.execution.inline_executor import InlineExecutor

_HOOK_FIRST = ("post_commithook_properties", "commit_properties")


@compatible_class
class TableOptimizer:
    """Operations that rewrite files; no row changes.

    The commit happens once, at the end, whatever `min_commit_interval` is. New files have the table's codec
    (`delta.parquet.compression.codec`), whatever `writer_properties` are. `max_temp_directory_size` has no
    effect.
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
            max_spill_size, max_temp_directory_size, min_commit_interval, writer_properties: see the class.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.

        Returns:
            The metrics.
        """
        parquet_options(writer_properties)
        metrics = self.table.optimize.compact(
            predicate_of(partition_filters),
            target_size_bytes=_size(target_size),
            executor=_executor(max_concurrent_tasks),
            commit_properties=core_properties(commit_properties, post_commithook_properties),
        )
        return optimize_metrics(metrics)

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
            max_temp_directory_size, min_commit_interval, writer_properties: see the class.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.

        Returns:
            The metrics.
        """
        parquet_options(writer_properties)
        metrics = self.table.optimize.z_order(
            [columns] if isinstance(columns, str) else list(columns),
            predicate_of(partition_filters),
            target_size_bytes=_size(target_size),
            full=True,
            memory_limit_bytes=max_spill_size,
            executor=_executor(max_concurrent_tasks),
            commit_properties=core_properties(commit_properties, post_commithook_properties),
        )
        return optimize_metrics(metrics)


def _size(target_size: int | None) -> int | None:
    largest = 2**63 - 1
    if isinstance(target_size, int) and not 1 <= target_size <= largest:
        raise ConfigurationError(
            f"target_file_size must be between 1 and {largest}",
            cause=f"It is {target_size}.",
            fix="Pass a number of bytes such as 134217728.",
        )
    return target_size


def _executor(tasks: int | None) -> Executor | None:
    return None if tasks is None else InlineExecutor(tasks)
