"""`spark_jobs.read`: a version of a table as a DataFrame."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError, SchemaMismatchError
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.typing import resolve
from delta_core.scan import Scan
from delta_core.schema.partition_values import parse_timestamp
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store
from spark_jobs.expressions.predicates import to_column
from spark_jobs.file_uris import is_unreadable
from spark_jobs.reader.arrow_scan import arrow_scan
from spark_jobs.reader.data_files import data_files
from spark_jobs.reader.native_scan import native_scan
from spark_jobs.schema import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@public
def read(
    spark: SparkSession,
    uri: str,
    *,
    version: int | None = None,
    timestamp: str | dt.datetime | int | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> DataFrame:
    """Read one version of a table as a DataFrame.

    The DataFrame always returns the rows of this version, until a vacuum deletes its files. Python reads the
    log during this call. Spark's Parquet scan reads the rows later.

    Args:
        spark: a classic or a Connect session whose workers can read the table's files.
        uri: the table's URI or path.
        version: the version; the newest when neither `version` nor `timestamp` is given.
        timestamp: selects the newest version at or before this time: a string (UTC without a zone), a
            datetime, or epoch milliseconds.
        columns: the columns, in this order; None for all. Names are compared without case.
        where: a predicate in Spark SQL's syntax. Files that cannot match are not opened, and only rows for
            which it is true are returned. It has `delta_core`'s semantics with UTC for times, for any
            settings of the session.

    Raises:
        TableNotFoundError, VersionNotFoundError: the table or the version does not exist.
        UnsupportedTableFeatureError: the table needs a feature that this library cannot read.
        ExpressionError: `where` cannot be parsed or names an unknown column.
        SchemaMismatchError: `columns` names a column that the table does not have.
    """
    if version is not None and timestamp is not None:
        raise ConfigurationError("Both a version and a timestamp are given.", fix="Pass only one of them.")
    store = open_store(uri, storage_options=storage_options, clock=clock)
    at_ms = None if timestamp is None else to_epoch_ms(timestamp)
    snapshot = Snapshot.load(store, version=version, timestamp_ms=at_ms, clock=clock)
    return read_snapshot(spark, snapshot, columns=columns, where=where)


def read_snapshot(
    spark: SparkSession, snapshot: Snapshot, *, columns: Sequence[str] | None = None, where: str | None = None
) -> DataFrame:
    """The rows of a snapshot: `read` with a loaded snapshot."""
    snapshot.require_readable()
    schema = snapshot.schema
    selected = None if columns is None else _column_names(snapshot, columns)
    predicate = None if where is None else resolve(parse_predicate(where, schema), schema)
    scan = Scan(snapshot, predicate=predicate)
    frame = read_files(spark, snapshot, scan.files())
    if predicate is not None:
        frame = frame.where(to_column(predicate, schema))
    if selected is not None:
        frame = frame.select(*["`" + name.replace("`", "``") + "`" for name in selected])
    return frame


def read_files(spark: SparkSession, snapshot: Snapshot, files: pa.Table) -> DataFrame:
    """The rows of some of a table's files, with the snapshot's columns.

    Args:
        spark: the session.
        snapshot: the snapshot with the columns and the table's root.
        files: `path` and `partition_values` of LIVE_FILE_SCHEMA. The files need not be live in the snapshot.

    Raises:
        PathEscapeError, CorruptLogError: see `data_files`.
    """
    schema, partition_columns = snapshot.schema, snapshot.partition_columns
    found = data_files(snapshot.store, files, schema=schema, partition_columns=partition_columns)
    arrow_files = [index for index, path in enumerate(found.paths) if is_unreadable(path)]
    skipped_by_spark = set(arrow_files)
    native_files = [index for index in range(len(found)) if index not in skipped_by_spark]
    frames = []
    if native_files:
        frames.append(
            native_scan(spark, found.select(native_files), schema=schema, partition_columns=partition_columns)
        )
    if arrow_files:
        frames.append(
            arrow_scan(
                spark,
                found.select(arrow_files),
                table_uri=snapshot.store.uri,
                schema=schema,
                partition_columns=partition_columns,
            )
        )
    if not frames:
        frames.append(spark.createDataFrame([], to_spark(schema)))
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


def to_epoch_ms(timestamp: str | dt.datetime | int) -> int:
    """A timestamp as epoch milliseconds. A timestamp without a zone is UTC.

    Raises:
        ConfigurationError: the string is not a timestamp.
    """
    if isinstance(timestamp, int):
        return timestamp
    try:
        moment = parse_timestamp(timestamp, zone=dt.UTC) if isinstance(timestamp, str) else timestamp
    except ValueError as error:
        raise ConfigurationError(
            f"{timestamp!r} is not a timestamp.",
            fix="Write a timestamp such as 2013-01-31 or 2013-01-31T08:00:00Z.",
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def _column_names(snapshot: Snapshot, columns: Sequence[str]) -> list[str]:
    fields = {name: snapshot.schema.find(name) for name in columns}
    unknown = [name for name, found in fields.items() if found is None]
    if unknown:
        raise SchemaMismatchError(
            f"The table has no column {', '.join(map(repr, unknown))}.",
            cause=f"Version {snapshot.version} has the columns {', '.join(snapshot.schema.names)}.",
            fix="Name columns of this version.",
        )
    return [found.name for found in fields.values() if found is not None]
