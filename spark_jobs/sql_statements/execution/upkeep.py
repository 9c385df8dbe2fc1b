"""OPTIMIZE, VACUUM, RESTORE, REORG, CONVERT, GENERATE and FSCK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core import convert_to_deltalake
from delta_core.errors import RetentionTooShortError, UnsupportedSqlError
from delta_core.schema.types import StructField, StructType
from spark_jobs.delta_table.frames import optimize_frame, restore_frame
from spark_jobs.delta_table.table import DeltaTable
from spark_jobs.sql_statements.execution.results import frame_of, no_rows
from spark_jobs.sql_statements.execution.surroundings import Surroundings
from spark_jobs.sql_statements.statements import (
    ConvertToDelta,
    Generate,
    Optimize,
    Reorganize,
    Repair,
    Restore,
    TableReference,
    Vacuum,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def table_of(table: TableReference, around: Surroundings) -> DeltaTable:
    """The table with delta-spark's methods."""
    return DeltaTable.forPath(
        around.spark,
        around.uri(table),
        storage_options=around.storage_options,
        allowed_roots=around.allowed_roots,
        engine_io=around.engine_io,
    )


def optimize(statement: Optimize, around: Surroundings) -> DataFrame:
    """Compact, Z-order or cluster the files of a table."""
    builder = table_of(statement.table, around).optimize()
    if statement.where is not None:
        builder = builder.where(statement.where.sql)
    if statement.zorder_by:
        return builder.executeZOrderBy(*statement.zorder_by)
    if statement.full:
        return _full(statement, around)
    return builder.executeCompaction()


def _full(statement: Optimize, around: Surroundings) -> DataFrame:
    """Cluster all files again, also those that are clustered already."""
    if statement.where is not None:
        raise UnsupportedSqlError(
            "OPTIMIZE FULL with a condition is not supported.",
            cause="A clustered table has no partitions that a condition could select.",
            fix="Leave out WHERE.",
        )
    table = around.core(around.uri(statement.table))
    metrics = table.optimize.cluster(full=True, executor=around.executor, commit_properties=around.commit)
    return optimize_frame(around.spark, table.snapshot, metrics)


def reorganize(statement: Reorganize, around: Surroundings) -> DataFrame:
    """Rewrite the files with deleted rows without these rows."""
    table = around.core(around.uri(statement.table))
    where = None if statement.where is None else statement.where.sql
    metrics = table.optimize.purge(where, executor=around.executor, commit_properties=around.commit)
    return optimize_frame(around.spark, table.snapshot, metrics)


def vacuum(statement: Vacuum, around: Surroundings) -> DataFrame:
    """Delete files that no version within the retention needs; with DRY RUN, list them.

    LITE takes them from the log, and FULL from a listing.
    """
    checked = (around.spark.conf.get(_RETENTION_CHECK, "true") or "").strip().lower() != "false"
    table = around.core(around.uri(statement.table))
    try:
        paths = table.vacuum(
            statement.retention_hours,
            dry_run=statement.dry_run,
            enforce_retention=checked,
            force=not checked,
            lite=statement.lite,
            executor=around.executor,
            commit_properties=around.commit,
        )
    except RetentionTooShortError as error:
        raise RetentionTooShortError(
            error.problem,
            cause=error.cause,
            fix="Write a longer RETAIN. If no reader or writer needs the files, run: "
            f"SET {_RETENTION_CHECK} = false.",
        ) from error
    root = table.table_uri.rstrip("/")
    rows = [(f"{root}/{path}",) for path in paths] if statement.dry_run else [(root,)]
    return frame_of(around.spark, "path string", rows)


def restore(statement: Restore, around: Surroundings) -> DataFrame:
    """Restore a table to a version or a time."""
    wanted = statement.table
    plan = around.core(around.uri(wanted)).restore(
        wanted.version,
        timestamp_ms=None if wanted.timestamp is None else around.epoch_ms(wanted.timestamp),
        commit_properties=around.commit,
    )
    return restore_frame(around.spark, plan)


def convert(statement: ConvertToDelta, around: Surroundings) -> DataFrame:
    """Convert a folder of Parquet files. A folder that is a table already stays as it is."""
    partition_by = None
    if statement.partition_by is not None:
        partition_by = StructType(
            tuple(StructField(name=item.name, data_type=item.data_type) for item in statement.partition_by)
        )
    convert_to_deltalake(
        around.require_allowed(statement.path),
        mode="ignore",
        partition_by=partition_by,
        partition_strategy=None if partition_by is None else "hive",
        storage_options=around.storage_options,
        collect_stats=statement.statistics,
        commit_properties=around.commit,
        executor=around.executor,
        clock=around.clock,
    )
    return no_rows(around.spark)


def generate(statement: Generate, around: Surroundings) -> DataFrame:
    """Write the manifests of a table."""
    table_of(statement.table, around).generate(statement.mode)
    return no_rows(around.spark)


def repair(statement: Repair, around: Surroundings) -> DataFrame:
    """Remove files from the table whose data is missing in the store; with DRY RUN, list them."""
    result = around.core(around.uri(statement.table)).repair(
        statement.dry_run, commit_properties=around.commit
    )
    rows = [(path, True) for path in result.metrics["files_removed"]]
    return frame_of(around.spark, "dataFilePath string, dataFileMissing boolean", rows)
