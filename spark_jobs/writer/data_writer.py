"""Writing a DataFrame's rows with Spark into a separate directory per job.

Jobs with the same output directory share its `_temporary`, and the first job that ends deletes the rows of
the others. For the design and its measurements, see docs/adr/2026-11-21-spark-write-path.md.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import DeltaError
from delta_core.storage import LogStore, local_root
from spark_jobs.engine_io import TableReach
from spark_jobs.expressions.checks import Check
from spark_jobs.failures import ViolationToken, as_delta_error, violation
from spark_jobs.scoped_conf import scoped_conf
from spark_jobs.writer.plain_directories import plain_name, with_plain_directories
from spark_jobs.writer.written_files import WrittenFile, with_canonical_directories, written_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)

_EMPTY_LISTINGS = 2
_MAX_LISTINGS = 20
_SECONDS_BETWEEN_LISTINGS = 0.25

WRITE_CONF = {
    # The default is INT96, which has no statistics and no order.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.variant.writeShredding.enabled": "false",
}


def write_files(
    frame: DataFrame,
    *,
    reach: TableReach,
    prefix: str,
    partition_columns: Sequence[str],
    compression: str,
    max_records_per_file: int | None = None,
    checks: Sequence[Check] = (),
    token: ViolationToken | None = None,
) -> list[WrittenFile]:
    """Write the rows below `<table>/<prefix>/` and list the written files.

    After an error, the written files are deleted, unless this process is killed.

    Args:
        frame: the rows as in the files, with partition columns as strings.
        reach: the table, which Spark reaches itself.
        prefix: a directory that no other job writes to. It must not start with `_` or `.`.
        partition_columns: their names in the log.
        compression: the codec.
        max_records_per_file: the maximum number of rows of a file.
        checks, token: the arguments of `with_checks` for `frame`.

    Raises:
        ConstraintViolationError: a row violates a check.
        JobFailedError: Spark failed.
    """
    spark, store = frame.sparkSession, reach.store
    renames = local_root(store) is not None
    directories = list(partition_columns)
    if partition_columns and not renames:
        frame = with_plain_directories(frame, partition_columns)
        directories = [plain_name(name) for name in partition_columns]
    writer = (
        frame.write.mode("error")
        .option("compression", compression)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .option("parquet.enable.summary-metadata", "false")
    )
    if max_records_per_file is not None:
        writer = writer.option("maxRecordsPerFile", max_records_per_file)
    if partition_columns:
        writer = writer.partitionBy(*directories)
    tag = f"deltaward-{prefix}"
    spark.addTag(tag)
    try:
        with scoped_conf(spark, WRITE_CONF):
            writer.parquet(f"{reach.root_of(reach.store)}/{prefix}")
        files = written_files(store, prefix, partition_columns, encoded=not renames)
        return with_canonical_directories(store, prefix, files) if renames else files
    except BaseException as error:
        # Running tasks would continue to write into the directory that is deleted next.
        with contextlib.suppress(Exception):
            spark.interruptTag(tag)
        discard_prefix(store, prefix, tasks_may_run=True)
        if not isinstance(error, Exception):
            raise
        found = token.find(error) if token is not None else None
        if found is not None:
            check = checks[found[0]]
            raise violation(check.name, check.text, found[1]) from None
        raise as_delta_error(error, doing="writing data files") from error
    finally:
        with contextlib.suppress(Exception):  # a broken connection must not hide the error
            spark.removeTag(tag)


def discard_prefix(
    store: LogStore,
    prefix: str,
    *more: str,
    tasks_may_run: bool = False,
    empty_listings: int = _EMPTY_LISTINGS,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Delete all files below the prefixes. A failed deletion is logged, and the files are left for a vacuum.

    Spark reports a failed or cancelled job while some tasks still run. Such a task creates its directory
    again when it opens a file. With `tasks_may_run` the prefixes are listed again until `empty_listings`
    listings in a row, four a second, have found nothing, for a few seconds at most.
    """
    prefixes = (prefix, *more)
    empty = 0 if tasks_may_run else empty_listings
    for _ in range(_MAX_LISTINGS):
        try:
            found = [info for one in prefixes for info in store.walk(one)]
            for info in found:
                store.delete(info.path)
        except DeltaError as error:
            _log.warning("Written files could not be deleted.", extra={"prefix": prefix, "error": str(error)})
            return
        existed = [remove_empty_directories(store, one) for one in prefixes]
        empty = 0 if tasks_may_run and (found or any(existed)) else empty + 1
        if empty >= empty_listings:
            return
        clock.sleep(_SECONDS_BETWEEN_LISTINGS)


def remove_empty_directories(store: LogStore, prefix: str) -> bool:
    """Remove empty directories below the prefix on a file system. A directory that contains a file stays.

    Returns:
        True when there was a directory.
    """
    root = local_root(store)
    if root is None:
        return False
    existed = False
    for folder, _, _ in os.walk(root / prefix, topdown=False):
        existed = True
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return existed
