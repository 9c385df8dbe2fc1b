"""`spark_jobs.files`: the live files of a table as a DataFrame."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.expressions.parse import parse_predicate
from delta_core.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store, options_for
from delta_core.table_features.support import require_log_support
from spark_jobs.engine_io import ExecutorReach, executor_options
from spark_jobs.packaging import ensure_importable
from spark_jobs.reader.read import to_epoch_ms
from spark_jobs.worker_tasks import BatchFunction, plain_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES_SCHEMA = (
    "path string, partition_values map<string, string>, size_bytes bigint, modification_time_ms bigint, "
    "stats string, tags map<string, string>, deletion_vector struct<storage_type: string, "
    "path_or_inline_dv: string, offset: int, size_in_bytes: int, cardinality: bigint>, base_row_id bigint, "
    "default_row_commit_version bigint, clustering_provider string"
)
"""The columns of `files`, which are those of LIVE_FILE_SCHEMA."""

_BATCH_ROWS = 10_000


@public
def files(
    spark: SparkSession,
    uri: str,
    *,
    version: int | None = None,
    timestamp: str | dt.datetime | int | None = None,
    where: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> DataFrame:
    """The live files of one version of a table as a DataFrame, with the columns FILES_SCHEMA.

    The driver reads only the last commits. When an action runs, one of Spark's tasks reads the log and
    streams the files, so that neither the driver nor a Connect server holds them.

    Args:
        spark: a classic or a Connect session whose workers can read the table's log.
        uri: the table's URI or path.
        version: the version; the newest when neither `version` nor `timestamp` is given.
        timestamp: selects the newest version at or before this time, as in `read`.
        where: a predicate on the table's columns in Spark SQL's syntax: only files that may contain matching
            rows.
        storage_options: options of the table's store. Secrets among them are used in this process only.

    Raises:
        TableNotFoundError, VersionNotFoundError: the table or the version does not exist.
        UnsupportedTableFeatureError: with a feature of the table, the list of files could be wrong.
        ExpressionError: `where` cannot be parsed or names an unknown column.
    """
    if version is not None and timestamp is not None:
        raise ConfigurationError("Both a version and a timestamp are given.", fix="Pass only one of them.")
    store = open_store(uri, storage_options=storage_options, clock=clock)
    at_ms = None if timestamp is None else to_epoch_ms(timestamp)
    snapshot = Snapshot.load(store, version=version, timestamp_ms=at_ms, clock=clock)
    require_log_support(snapshot.protocol, operation="list the table's files")
    if where is not None:
        parse_predicate(where, snapshot.schema)
    ensure_importable(spark)
    table = ExecutorReach(
        table_uri=store.uri, options=executor_options(options_for(store.uri, storage_options))
    )
    lister = _lister(table, snapshot.version, where)
    return spark.range(1, numPartitions=1).mapInArrow(lister, FILES_SCHEMA)


def _lister(table: ExecutorReach, version: int, where: str | None) -> BatchFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        with plain_errors():
            store, _ = table.open()
            snapshot = Snapshot.load(store, version=version)
            live = snapshot.files if where is None else Scan(snapshot, predicate=where).live_files
            yield from live.stream_batches(rows=_BATCH_ROWS)

    return run
