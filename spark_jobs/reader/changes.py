"""`spark_jobs.read_changes`: the rows that changed between two versions as a DataFrame."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.deletion_vectors.file_update import records_in_statistics
from delta_core.errors import ConfigurationError
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.typing import resolve
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.scan import ChangeDataScan
from delta_core.scan.commit_changes import CHANGE_COLUMNS
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType
from delta_core.snapshot.commit_time import first_version_since
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.engine_io import open_reach
from spark_jobs.reader.read import column_names, to_epoch_ms
from spark_jobs.reader.table_files import TableFile
from spark_jobs.reader.table_scan import TableScan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@public
def read_changes(
    spark: SparkSession,
    uri: str,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp: str | dt.datetime | int | None = None,
    ending_timestamp: str | dt.datetime | int | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    storage_options: Mapping[str, str] | None = None,
    engine_io: str = EngineIO.AUTO,
    clock: Clock = SYSTEM_CLOCK,
) -> DataFrame:
    """Read the rows that changed between two versions, both included, as a DataFrame.

    The columns are those of the last version, and delta-spark's `_change_type` (`insert`, `delete`,
    `update_preimage`, `update_postimage`), `_commit_version` and `_commit_timestamp`. The table must have had
    the property `delta.enableChangeDataFeed` in all of the versions. Python reads the log during this call.

    Args:
        spark: a classic or a Connect session whose workers can read the table's files.
        uri: the table's URI or path.
        starting_version: the first version.
        ending_version: the last version; the newest when there is no end.
        starting_timestamp: start at the first version that was committed at this time or later: a string (UTC
            without a zone), a datetime, or epoch milliseconds.
        ending_timestamp: end at the last version that was committed at this time or before.
        columns: the columns, in this order; None for all. Names are compared without case.
        where: a predicate in Spark SQL's syntax on the columns, as in `read`.
        allowed_roots: directories outside of the table that its files may be in, as in `read`.
        storage_options: options of the store, as in `read`.
        engine_io: how Spark reaches the files, as in `read`.

    Raises:
        TableChangedError: change data was not enabled for all of the versions, or the schema of a version is
            not compatible with the schema of the last version.
        TableNotFoundError, VersionNotFoundError: the table or a version is not in the log.
        ConfigurationError: there is no start, there are two starts or two ends, or the first version is after
            the last one.
        SchemaMismatchError: `columns` names a column that does not exist.
        ExpressionError: `where` cannot be parsed or names an unknown column.
    """
    if (starting_version is None) == (starting_timestamp is None):
        raise ConfigurationError(
            "The changes of a table need exactly one start.",
            fix="Pass starting_version or starting_timestamp; version 0 is the first one.",
        )
    if ending_version is not None and ending_timestamp is not None:
        raise ConfigurationError("Both an ending version and an ending time are given.", fix="Pass one.")
    reach = open_reach(
        spark,
        uri,
        engine_io=engine_io,
        storage_options=storage_options,
        allowed_roots=allowed_roots,
        clock=clock,
    )
    last_ms = None if ending_timestamp is None else to_epoch_ms(ending_timestamp)
    last = Snapshot.load(reach.store, version=ending_version, timestamp_ms=last_ms, clock=clock)
    if starting_timestamp is not None:
        starting_version = first_version_since(reach.store, to_epoch_ms(starting_timestamp, up=True))
    assert starting_version is not None  # there is exactly one start
    changes = ChangeDataScan(
        last, starting_version=starting_version, allowed_roots=reach.access.allowed_roots
    )
    schema = StructType((*last.schema.fields, *CHANGE_COLUMNS))
    scan = TableScan(
        reach=reach,
        schema=schema,
        mapping=ColumnMapping(last.column_mapping.mode, frozenset(field.name for field in CHANGE_COLUMNS)),
        columns=None if columns is None else column_names(schema, columns, version=last.version),
        predicate=None if where is None else resolve(parse_predicate(where, schema), schema),
    )
    return _changed_rows(spark, scan, changes)


def _changed_rows(spark: SparkSession, scan: TableScan, changes: ChangeDataScan) -> DataFrame:
    files = (
        TableFile(
            path=changed.path,
            values=changed.values,
            rows=changed.rows,
            num_rows=records_in_statistics(changed.stats),
            size_bytes=changed.size_bytes,
        )
        for changed in changes.changed_files()
    )
    return scan_groups(spark, scan, files)


def scan_groups(spark: SparkSession, scan: TableScan, files: Iterable[TableFile]) -> DataFrame:
    """The rows of files of several versions, whose constants may differ.

    Change data files have the type of a change as a column, and the partition columns of a table may change.

    Raises:
        DeltaError: see `TableScan.read`.
    """
    physical = {scan.mapping.physical_name(field).casefold(): field.name for field in scan.schema}
    groups: dict[frozenset[str], list[TableFile]] = {}
    for file in files:
        names = frozenset(physical[name.casefold()] for name in file.values if name.casefold() in physical)
        groups.setdefault(names, []).append(file)
    frames = [
        scan.read(spark, files, constants=sorted(names), metadata={}) for names, files in groups.items()
    ]
    if not frames:
        return scan.read(spark, [], constants=(), metadata={})
    return reduce(lambda one, other: one.unionByName(other), frames)
