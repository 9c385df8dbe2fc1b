"""`spark_jobs.stream`: the new rows of a table as a streaming query, read natively.

The query itself carries only the list of each batch's files. Each batch is then read as `spark_jobs.read`
reads a table, so that no row passes through Python.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyspark

from delta_core.boundary import public, public_class
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.deletion_vectors.file_update import records_in_statistics
from delta_core.errors import ConfigurationError
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.typing import resolve
from delta_core.follow import StreamFile
from delta_core.follow.stream_rows import stream_schema
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.engine_io import TableReach, open_reach
from spark_jobs.failures import as_delta_error
from spark_jobs.packaging import ensure_importable
from spark_jobs.reader.changes import scan_groups
from spark_jobs.reader.read import column_names
from spark_jobs.reader.table_files import TableFile
from spark_jobs.reader.table_scan import TableScan
from spark_jobs.streaming.files_source import FILE_COLUMN, FILES_FORMAT, FilesSource, request_option
from spark_jobs.streaming.options import STREAM_OPTIONS, batch_limits, follow_options, pin_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BatchHandler = Callable[["DataFrame", int], None]
"""Handles the rows of a batch; the second argument is the number of the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Address:
    """How to open the table wherever a batch is handled: values that can be pickled."""

    uri: str
    columns: tuple[str, ...] | None
    where: str | None
    change_feed: bool
    engine_io: str
    allowed_roots: tuple[str, ...]
    storage_options: Mapping[str, str] | None = field(repr=False)

    def reach(self, spark: SparkSession, clock: Clock = SYSTEM_CLOCK) -> TableReach:
        """How a session reaches the table."""
        return open_reach(
            spark,
            self.uri,
            engine_io=self.engine_io,
            storage_options=self.storage_options,
            allowed_roots=self.allowed_roots,
            clock=clock,
        )

    def scan(self, snapshot: Snapshot, reach: TableReach) -> TableScan:
        """The scan of a stream's files, with the columns of a snapshot."""
        schema, mapping = stream_schema(snapshot, change_feed=self.change_feed)
        return TableScan(
            reach=reach,
            schema=schema,
            mapping=mapping,
            columns=None
            if self.columns is None
            else column_names(schema, self.columns, version=snapshot.version),
            predicate=None if self.where is None else resolve(parse_predicate(self.where, schema), schema),
        )


@public
def stream(
    spark: SparkSession,
    uri: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    storage_options: Mapping[str, str] | None = None,
    engine_io: str = EngineIO.AUTO,
    clock: Clock = SYSTEM_CLOCK,
    **options: Any,
) -> TableStream:
    """Stream the rows of a table, and then the rows of each later commit.

    ```python
    query = (
        spark_jobs.stream(spark, uri, maxFilesPerTrigger=100)
        .foreach_batch(lambda rows, batch_id: rows.write.mode("append").parquet(target))
        .start(checkpoint)
    )
    ```

    Rows have the columns of the newest version when the query starts. Spark repeats a batch after a failure,
    with the same number and the same rows. See docs/streaming.md.

    Args:
        spark: a classic or a Connect session of Spark 4.2 or later.
        uri: the table's URI or path.
        columns: the columns, in this order; None for all.
        where: a predicate in Spark SQL's syntax; only rows for which it is true are read.
        allowed_roots: directories outside of the table that its files may be in, as in `read`.
        storage_options: options of the store, as in `read`. The query's own process finds secrets in its
            environment.
        engine_io: how Spark reads the files, as in `read`.
        **options: delta-spark's options: `startingVersion`, `startingTimestamp`, `maxFilesPerTrigger`,
            `maxBytesPerTrigger`, `ignoreDeletes`, `ignoreChanges`, `skipChangeCommits`, `failOnDataLoss`,
            `readChangeFeed`; and `pinName` and `pinSeconds`, which pin what the query has not read (see
            docs/leases.md).

    Returns:
        The stream. It starts with `foreach_batch(...).start(checkpoint)`.

    Raises:
        ConfigurationError: an option does not exist or has a wrong value, or Spark is older than 4.2.
        TableNotFoundError: the table does not exist.
        ExpressionError: `where` cannot be parsed or names an unknown column.
        SchemaMismatchError: `columns` names a column that the table does not have.
    """
    require_spark_42()
    known = {name.lower() for name in STREAM_OPTIONS}
    for name in options:
        if name.lower() not in known:
            raise ConfigurationError(
                f"A stream has no option {name!r}.", fix=f"Use one of {', '.join(STREAM_OPTIONS)}."
            )
    strings = {name: _option_string(value) for name, value in options.items()}
    batch_limits(strings)
    pin_options(strings)
    address = _Address(
        uri=uri,
        columns=None if columns is None else tuple(columns),
        where=where,
        change_feed=follow_options(strings).change_feed,
        engine_io=engine_io,
        allowed_roots=tuple(os.fspath(root) for root in allowed_roots),
        storage_options=None if storage_options is None else dict(storage_options),
    )
    reach = address.reach(spark, clock)
    address.scan(Snapshot.load(reach.store, clock=clock), reach)  # refuses wrong columns and predicates now
    return TableStream(spark, address, strings, clock=clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """The parts of a stream that a caller sets before it starts."""

    handler: BatchHandler | None = None
    trigger: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None


@public_class
class TableStream:
    """A stream of a table's rows that has not started. Each method returns a new one."""

    def __init__(
        self,
        spark: SparkSession,
        address: _Address,
        options: Mapping[str, str],
        draft: _Draft | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create a stream; callers use `stream`."""
        self._spark = spark
        self._address = address
        self._options = options
        self._draft = draft or _Draft()
        self._clock = clock

    def foreach_batch(self, handler: BatchHandler) -> TableStream:
        """Handle the rows of each batch with a function of a DataFrame and the number of the batch."""
        return self._with(replace(self._draft, handler=handler))

    def trigger(self, **trigger: Any) -> TableStream:
        """Set when batches run, with the arguments of Spark's own `trigger`, such as `availableNow=True`."""
        return self._with(replace(self._draft, trigger=trigger))

    def query_name(self, name: str) -> TableStream:
        """Set the name of the query."""
        return self._with(replace(self._draft, name=name))

    def start(self, checkpoint: str | os.PathLike[str]) -> StreamingQuery:
        """Start the query.

        Args:
            checkpoint: the directory of the query's checkpoint, as a path or URI for Spark.

        Returns:
            Spark's own query.

        Raises:
            ConfigurationError: there is no function for the batches.
            TableNotFoundError: the table does not exist any more.
        """
        draft, spark = self._draft, self._spark
        if draft.handler is None:
            raise ConfigurationError(
                "A stream cannot start without a function for its batches.", fix="Call foreach_batch first."
            )
        reach = self._address.reach(spark, self._clock)
        version = Snapshot.load(reach.store, clock=self._clock).version
        ensure_importable(spark)
        spark.dataSource.register(FilesSource)
        name, value = request_option(reach.in_executors, self._options, version=version)
        writer = (
            spark.readStream.format(FILES_FORMAT)
            .option(name, value)
            .load()
            .writeStream.option("checkpointLocation", os.fspath(checkpoint))
            .foreachBatch(_BatchReader(self._address, version, draft.handler))
        )
        if draft.trigger:
            writer = writer.trigger(**draft.trigger)
        if draft.name is not None:
            writer = writer.queryName(draft.name)
        return writer.start()

    def _with(self, draft: _Draft) -> TableStream:
        return TableStream(self._spark, self._address, self._options, draft, clock=self._clock)


class _BatchReader:
    """Reads the files of each batch, and passes their rows to the handler."""

    def __init__(self, address: _Address, version: int, handler: BatchHandler) -> None:
        self._address = address
        self._version = version
        self._handler = handler
        self._snapshot: Snapshot | None = None

    def __getstate__(self) -> tuple[_Address, int, BatchHandler]:
        return self._address, self._version, self._handler

    def __setstate__(self, state: tuple[_Address, int, BatchHandler]) -> None:
        self.__init__(*state)  # type: ignore[misc] # without the snapshot, which cannot be pickled

    def __call__(self, listed: DataFrame, batch_id: int) -> None:
        spark = listed.sparkSession
        files = [StreamFile.from_document(json.loads(row[FILE_COLUMN])) for row in listed.collect()]
        files.sort(key=lambda file: (file.version, file.index))
        reach = self._address.reach(spark)
        if self._snapshot is None:
            self._snapshot = Snapshot.load(reach.store, version=self._version)
        scan = self._address.scan(self._snapshot, reach)
        try:
            rows = scan_groups(spark, scan, [_table_file(file) for file in files])
        except Exception as error:
            raise as_delta_error(error, doing=f"reading batch {batch_id} of a stream") from error
        self._handler(rows, batch_id)


def _table_file(file: StreamFile) -> TableFile:
    return TableFile(
        path=file.path,
        values=file.values,
        rows=file.rows,
        num_rows=records_in_statistics(file.stats),
        size_bytes=file.size_bytes,
    )


def require_spark_42() -> None:
    """Refuse a Spark whose sources in Python have no limits for a batch.

    Raises:
        ConfigurationError: Spark is older than 4.2.
    """
    found = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if found < (4, 2):
        raise ConfigurationError(
            f"Spark {pyspark.__version__} cannot stream a table through deltaward.",
            cause="Streaming sources in Python have limits for a batch since Spark 4.2.",
            fix="Use Spark 4.2, or DeltaTable.follow, which needs no Spark.",
        )


def _option_string(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
