"""`spark_jobs.read`: a version of a table as a DataFrame."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError, SchemaMismatchError
from delta_core.expressions.ast import Expression
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.typing import resolve
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.scan import Scan
from delta_core.schema.partition_values import parse_timestamp
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.engine_io import TableReach, open_reach
from spark_jobs.reader.row_tracking import RowTrackingColumns
from spark_jobs.reader.table_files import table_files
from spark_jobs.reader.table_scan import TableScan

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
    row_ids: bool = False,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    storage_options: Mapping[str, str] | None = None,
    engine_io: str = EngineIO.AUTO,
    clock: Clock = SYSTEM_CLOCK,
) -> DataFrame:
    """Read one version of a table as a DataFrame.

    The DataFrame always returns the rows of this version, until a vacuum deletes its files. Python reads the
    log and small deletion vectors during this call. The rows are read later.

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
        row_ids: add the column `_metadata`, so that `_metadata.row_id` and `_metadata.row_commit_version` are
            those of delta-spark. The table must have row tracking enabled.
        allowed_roots: paths or URIs. Absolute paths in the log, as those of a shallow clone, may lead below
            them.
        storage_options: options of the table's store. Secrets among them are used in this process only.
        engine_io: how Spark reads the files: `native`, `arrow`, or `auto`, which is native where Spark has a
            connector for the store. Through Arrow, only `columns` and `where` reduce what is read. See
            docs/spark.md.

    Raises:
        TableNotFoundError, VersionNotFoundError: the table or the version does not exist.
        UnsupportedTableFeatureError: the table needs a feature that this library cannot read.
        ExpressionError: `where` cannot be parsed or names an unknown column.
        SchemaMismatchError: `columns` names a column that the table does not have.
        RowTrackingDisabledError: `row_ids` is set, and the table does not have row tracking enabled.
        ConfigurationError: native access is required, and Spark has no connector.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    if version is not None and timestamp is not None:
        raise ConfigurationError("Both a version and a timestamp are given.", fix="Pass only one of them.")
    reach = open_reach(
        spark,
        uri,
        engine_io=engine_io,
        storage_options=storage_options,
        allowed_roots=allowed_roots,
        clock=clock,
    )
    at_ms = None if timestamp is None else to_epoch_ms(timestamp)
    snapshot = Snapshot.load(reach.store, version=version, timestamp_ms=at_ms, clock=clock)
    return read_snapshot(spark, snapshot, reach, columns=columns, where=where, row_ids=row_ids)


def read_snapshot(
    spark: SparkSession,
    snapshot: Snapshot,
    reach: TableReach,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    row_ids: bool = False,
) -> DataFrame:
    """The rows of a snapshot: `read` with a loaded snapshot."""
    schema = snapshot.schema
    selected = None if columns is None else column_names(schema, columns, version=snapshot.version)
    predicate = None if where is None else resolve(parse_predicate(where, schema), schema)
    live = Scan(snapshot, predicate=predicate, allowed_roots=reach.access.allowed_roots).live_files
    tracking = RowTrackingColumns.of(snapshot) if row_ids else None
    needed = ["path", "partition_values", "size_bytes"]
    needed += ["deletion_vector", "stats"] if live.has_deletion_vectors else []
    needed += list(tracking.constants.values()) if tracking is not None else []
    return read_files(
        spark,
        snapshot,
        live.to_table(needed),
        reach,
        columns=selected,
        predicate=predicate,
        tracking=tracking,
    )


def read_files(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table,
    reach: TableReach,
    *,
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
    tracking: RowTrackingColumns | None = None,
) -> DataFrame:
    """The rows of some of a table's files, with the snapshot's columns.

    Args:
        spark: the session.
        snapshot: the snapshot with the columns.
        files: columns of LIVE_FILE_SCHEMA: see `table_files`. The files need not be live in the snapshot.
        reach: how Spark reaches the table.
        columns: the columns, as the schema spells them; None for all.
        predicate: resolved; only rows for which it is true are returned.
        tracking: adds the column with row ids.

    Raises:
        PathEscapeError, CorruptLogError: see `TableScan.read`.
    """
    names = snapshot.schema.names if columns is None else columns
    schema, mapping, constants = snapshot.schema, snapshot.column_mapping, snapshot.partition_columns
    added: Mapping[str, str] = {}
    metadata: Mapping[str, str] = {}
    if tracking is not None:
        schema, mapping = tracking.added_to(schema, mapping)
        added, metadata = tracking.constants, tracking.metadata
    scan = TableScan(
        reach=reach,
        schema=schema,
        mapping=mapping,
        columns=None if columns is None else [*columns, *(tracking.names if tracking is not None else ())],
        predicate=predicate,
    )
    frame = scan.read(spark, table_files(files, added), constants=[*constants, *added], metadata=metadata)
    return frame if tracking is None else tracking.with_metadata(frame, names)


def to_epoch_ms(timestamp: str | dt.datetime | int, *, up: bool = False) -> int:
    """A timestamp as epoch milliseconds. A timestamp without a zone is UTC.

    Args:
        timestamp: whole numbers are milliseconds.
        up: round a time between two milliseconds up, as for the start of a range.

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
    since_epoch, millisecond = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(milliseconds=1)
    return -(-since_epoch // millisecond) if up else since_epoch // millisecond


def column_names(schema: StructType, columns: Sequence[str], *, version: int) -> list[str]:
    """The names of some columns as the schema spells them, each once.

    Raises:
        SchemaMismatchError: a column does not exist in the version.
    """
    fields = {name: schema.find(name) for name in columns}
    unknown = [name for name, found in fields.items() if found is None]
    if unknown:
        raise SchemaMismatchError(
            f"The table has no column {', '.join(map(repr, unknown))}.",
            cause=f"Version {version} has the columns {', '.join(schema.names)}.",
            fix="Name columns of this version.",
        )
    return list(dict.fromkeys(found.name for found in fields.values() if found is not None))
