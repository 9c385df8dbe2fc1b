"""Staging rows: data files on disk and described as `add` actions, which no version refers to yet."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from delta_core.dml.metadata_update import MetadataUpdate
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.progress import ProgressReporter
from delta_core.storage.task_stores import share_with_tasks
from delta_core.transaction import num_records
from spark_jobs.engine_io import TableReach
from spark_jobs.expressions.checks import Check
from spark_jobs.expressions.columns import quoted, with_partition_strings
from spark_jobs.failures import ViolationToken
from spark_jobs.writer.arrow_writer import write_files_through_arrow
from spark_jobs.writer.data_writer import discard_prefix, write_files
from spark_jobs.writer.footers import describe_files
from spark_jobs.writer.staged_files import StagedFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOOTER_READERS: Final = 8
"""The number of threads that read footers. Each read is one small request, mostly waiting."""


def stage_rows(
    frame: DataFrame | None,
    reach: TableReach,
    change: MetadataUpdate,
    *,
    checks: Sequence[Check],
    token: ViolationToken,
    compression: str,
    progress: ProgressReporter,
) -> StagedFiles:
    """Write the rows below a new prefix. After an error, the written files are deleted.

    Args:
        frame: the rows, with the columns of the definition; None for no rows.
        reach: how Spark reaches the table.
        change: the table's definition after the commit.
        checks, token: the arguments of `with_checks` for `frame`.

    Raises:
        ConstraintViolationError: a row violates a check.
        JobFailedError: Spark failed.
    """
    staged = StagedFiles(
        reach=reach,
        # With one prefix, files of two jobs would overwrite each other, so each try has a new prefix.
        prefix=str(uuid.uuid4()),
        adds=(),
        rows=0,
        schema=change.schema,
        partition_columns=change.partition_columns,
        configuration=change.configuration,
        compression=compression,
    )
    if frame is None:
        return staged
    progress.emit("data.writing", done=0, prefix=staged.prefix)
    if reach.is_native:
        return _written_by_spark(frame, staged, checks=checks, token=token, progress=progress)
    if change.partition_columns:
        # As Spark's own writer does: otherwise a task would open and close the files of many partitions.
        frame = frame.sortWithinPartitions(*[quoted(name) for name in change.partition_columns])
    adds = write_files_through_arrow(
        frame,
        reach,
        plan=change.plan,
        prefix=staged.prefix,
        compression=compression,
        checks=checks,
        token=token,
    )
    size = sum(add.size_bytes for add in adds)
    progress.emit("data.written", done=len(adds), total=len(adds), bytes=size)
    rows = sum(num_records(add) or 0 for add in adds)
    progress.emit("stats.collected", done=len(adds), total=len(adds), rows=rows)
    return replace(staged, adds=adds, rows=rows)


def _written_by_spark(
    frame: DataFrame,
    staged: StagedFiles,
    *,
    checks: Sequence[Check],
    token: ViolationToken,
    progress: ProgressReporter,
) -> StagedFiles:
    """Write the rows with Spark's own writer, and take the statistics from the footers."""
    store = staged.store
    if staged.partition_columns:
        frame = with_partition_strings(frame, staged.schema, staged.partition_columns)
    files = write_files(
        frame,
        reach=staged.reach,
        prefix=staged.prefix,
        partition_columns=staged.partition_columns,
        compression=staged.compression,
        checks=checks,
        token=token,
    )
    progress.emit("data.written", done=len(files), total=len(files), bytes=sum(f.size_bytes for f in files))
    try:
        with share_with_tasks(store):
            adds, rows, empty = describe_files(
                InlineExecutor(FOOTER_READERS),
                files,
                table_uri=store.uri,
                schema=staged.schema,
                partition_columns=staged.partition_columns,
                configuration=dict(staged.configuration),
            )
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
