"""Staging rows: data files on disk and described as `add` actions, which no version refers to yet."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from delta_core.data.write_plan import WritePlan
from delta_core.execution.executor import Executor
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.progress import ProgressReporter
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.storage.task_stores import share_with_tasks
from delta_core.transaction import num_records
from spark_jobs.engine_io import TableReach
from spark_jobs.expressions.checks import Check
from spark_jobs.expressions.columns import quoted
from spark_jobs.failures import ViolationToken
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.writer.arrow_writer import write_files_through_arrow
from spark_jobs.writer.changed_rows import NO_EXTRA_COLUMNS, ExtraColumns
from spark_jobs.writer.data_writer import discard_prefix, write_files
from spark_jobs.writer.footers import describe_files, reads_rows
from spark_jobs.writer.optimized import is_optimized, parts_of, rebalanced
from spark_jobs.writer.physical_rows import needs_tasks, physical_frame
from spark_jobs.writer.staged_files import StagedFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOOTER_READERS: Final = 8
"""The number of threads that read footers. Each read is one small request, mostly waiting."""

MOST_INLINE_BYTES: Final = 64 << 20
"""The driver reads rows for statistics of files up to this size in all; tasks read those of larger ones."""


def stage_rows(
    frame: DataFrame | None,
    reach: TableReach,
    plan: WritePlan,
    *,
    checks: Sequence[Check],
    token: ViolationToken,
    compression: str,
    max_records_per_file: int | None = None,
    optimized_write: bool | None = None,
    extra: ExtraColumns = NO_EXTRA_COLUMNS,
    progress: ProgressReporter,
) -> StagedFiles:
    """Write the rows below a new prefix. After an error, the written files are deleted.

    Args:
        frame: complete rows with the columns of the table; None for no rows.
        reach: how Spark reaches the table. Files that Spark cannot write itself are written by tasks.
        plan: the write plan of the table after the commit.
        checks, token: the arguments of `with_checks` for `frame`.
        compression: the codec.
        max_records_per_file: the maximum number of rows of a file.
        optimized_write: whether rows are exchanged first (`optimized`); None for the table's property.
        extra: the columns of the rows besides those of the table. Change data is written by tasks.
        progress: gets the number of files and rows.

    Raises:
        ConstraintViolationError: a row violates a check.
        JobFailedError: Spark failed.
    """
    if reach.is_native and (extra.kind is not None or needs_tasks(plan)):
        reach = replace(reach, engine_io=EngineIO.ARROW)
    staged = StagedFiles(
        reach=reach,
        # With one prefix, files of two jobs would overwrite each other, so each try has a new prefix.
        prefix=str(uuid.uuid4()),
        adds=(),
        rows=0,
        plan=plan,
        compression=compression,
        max_records_per_file=max_records_per_file,
    )
    if frame is None:
        return staged
    progress.emit("data.writing", done=0, prefix=staged.prefix)
    with ExitStack() as settings:
        if is_optimized(plan, optimized_write):
            frame = rebalanced(frame, plan.partition_columns)
            settings.enter_context(parts_of(frame.sparkSession, plan))
        return _written(frame, staged, extra=extra, checks=checks, token=token, progress=progress)


def _written(
    frame: DataFrame,
    staged: StagedFiles,
    *,
    extra: ExtraColumns,
    checks: Sequence[Check],
    token: ViolationToken,
    progress: ProgressReporter,
) -> StagedFiles:
    reach, plan = staged.reach, staged.plan
    if reach.is_native:
        return _written_by_spark(
            frame, staged, keep_row_ids=extra.hidden, checks=checks, token=token, progress=progress
        )
    if plan.partition_columns:
        # As Spark's own writer does: otherwise a task would open and close the files of many partitions.
        frame = frame.sortWithinPartitions(*[quoted(name) for name in plan.partition_columns])
    adds, changes = write_files_through_arrow(
        frame,
        reach,
        plan=plan,
        prefix=staged.prefix,
        compression=staged.compression,
        max_records_per_file=staged.max_records_per_file,
        extra=extra,
        checks=checks,
        token=token,
    )
    size = sum(add.size_bytes for add in adds)
    progress.emit("data.written", done=len(adds), total=len(adds), bytes=size)
    rows = sum(num_records(add) or 0 for add in adds)
    progress.emit("stats.collected", done=len(adds), total=len(adds), rows=rows)
    return replace(staged, adds=adds, changes=changes, rows=rows)


def _written_by_spark(
    frame: DataFrame,
    staged: StagedFiles,
    *,
    keep_row_ids: bool,
    checks: Sequence[Check],
    token: ViolationToken,
    progress: ProgressReporter,
) -> StagedFiles:
    """Write the rows with Spark's own writer, and take the statistics from the footers."""
    store, plan = staged.store, staged.plan
    frame, partition_names = physical_frame(frame, plan, keep_row_ids=keep_row_ids)
    files = write_files(
        frame,
        reach=staged.reach,
        prefix=staged.prefix,
        partition_columns=partition_names,
        compression=staged.compression,
        max_records_per_file=staged.max_records_per_file,
        checks=checks,
        token=token,
    )
    size = sum(file.size_bytes for file in files)
    progress.emit("data.written", done=len(files), total=len(files), bytes=size)
    executor: Executor = InlineExecutor(FOOTER_READERS)
    if reads_rows(plan) and size > MOST_INLINE_BYTES:
        executor = SparkExecutor(frame.sparkSession, storage_options=staged.reach.executor_options)
    try:
        with share_with_tasks(store):
            adds, rows, empty = describe_files(executor, files, table_uri=store.uri, plan=plan)
        for path in empty:
            store.delete(path)
        # Spark's tasks do not sync their files to disk. After a power cut, the commit must not refer to lost
        # files.
        store.persist([file.path for file in files if file.path not in empty])
    except BaseException:
        discard_prefix(store, staged.prefix)
        raise
    progress.emit("stats.collected", done=len(adds), total=len(files), rows=rows)
    return replace(staged, adds=adds, rows=rows)
