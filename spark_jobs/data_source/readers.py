"""Reading a table through the data source `deltaward`: files planned in the driver, rows read by tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from delta_core.deletion_vectors.row_choice import ALL_ROWS, RowChoice
from delta_core.errors import ConfigurationError
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.typing import resolve
from delta_core.follow.stream_rows import StreamRows, stream_schema
from delta_core.scan import ChangeDataScan, Scan
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import StructType
from delta_core.snapshot.commit_time import first_version_since
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.data_source.filters import FilterPush, both, condition_of
from spark_jobs.data_source.options import executor_reach
from spark_jobs.engine_io import ExecutorReach
from spark_jobs.reader.arrow_scan import OPEN_BYTES, TASK_BYTES
from spark_jobs.reader.arrow_variants import with_spark_variants
from spark_jobs.reader.read import to_epoch_ms
from spark_jobs.reader.table_files import TableFile, table_files
from spark_jobs.streaming.offsets import TableOffsets
from spark_jobs.streaming.options import (
    CHANGE_FEED_NAMES,
    batch_limits,
    flag,
    folded,
    follow_options,
    pin_options,
    whole,
)
from spark_jobs.worker_tasks import plain_errors

_NEEDED: Final = ("path", "partition_values", "size_bytes", "deletion_vector")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """Values with which tasks read rows; they can be pickled.

    Attributes:
        table: how to open the table.
        schema_json: the columns of the rows.
        mapping: the names of the columns in files.
        where: a predicate that the rows must satisfy; None for all rows.
    """

    table: ExecutorReach
    schema_json: str
    mapping: ColumnMapping
    where: str | None = None

    def read(self, files: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        """The rows of the files of one partition."""
        with plain_errors():
            store, access = self.table.open()
            schema = schema_from_json(self.schema_json)
            predicate = None if self.where is None else resolve(parse_predicate(self.where, schema), schema)
            rows = StreamRows(store, schema, self.mapping, access=access, predicate=predicate)
            for file in files:
                chosen = RowChoice.from_document(file["rows"]) if "rows" in file else ALL_ROWS
                for batch in rows.read(file["path"], file["values"], chosen):
                    yield with_spark_variants(batch, rows.schema)


def read_version(options: Mapping[str, str]) -> int | None:
    """The version that a batch reads, opened by its options; None if a stream or the newest version is read.

    Raises:
        ConfigurationError: two versions are given, or a value is not valid.
    """
    named = folded(options)
    feed = is_change_feed(named)
    version = named.get("endingversion" if feed else "versionasof")
    timestamp = named.get("endingtimestamp" if feed else "timestampasof")
    if version is not None and timestamp is not None:
        raise ConfigurationError("Both a version and a timestamp are given.", fix="Pass only one of them.")
    if timestamp is not None:
        store, _ = executor_reach(options).open()
        return Snapshot.load(store, timestamp_ms=to_epoch_ms(timestamp)).version
    return None if version is None else whole(version, "endingVersion" if feed else "versionAsOf")


def is_change_feed(named: Mapping[str, str]) -> bool:
    """Whether the options ask for the changes of a table."""
    return any(flag(named, name) for name in CHANGE_FEED_NAMES)


def row_schema(snapshot: Snapshot, options: Mapping[str, str]) -> tuple[StructType, ColumnMapping]:
    """The columns of the rows that the options ask for, and their names in files."""
    return stream_schema(snapshot, change_feed=is_change_feed(folded(options)))


class TableReader(DataSourceReader):
    """Reads a version, or the changes between two versions."""

    def __init__(self, options: Mapping[str, str], version: int | None) -> None:
        """Create the reader of a query.

        Args:
            options: the options of the query.
            version: the version whose schema Spark has; None for the newest.
        """
        self._options = dict(options)
        self._version = version
        self._pushed: str | None = None
        self._snapshot: Snapshot | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The values that tasks need: a snapshot cannot be pickled."""
        return {**self.__dict__, "_snapshot": None}

    @property
    def pushFilters(self) -> FilterPush:  # noqa: N802 - see FilterPush
        """Gets the filters of a query, where the session passes them."""
        return FilterPush(self._push)

    def partitions(self) -> Sequence[InputPartition]:
        """The files of the version, in groups."""
        with plain_errors():
            table = executor_reach(self._options)
            _, access = table.open()
            snapshot = self._load()
            named = folded(self._options)
            where = both(named.get("where"), self._pushed)
            rows = rows_of_table(table, snapshot, self._options, where=where)
            if is_change_feed(named):
                files = _changed_files(snapshot, named)
            else:
                scan = Scan(snapshot, predicate=where, allowed_roots=access.allowed_roots)
                files = list(table_files(scan.live_files.to_table(list(_NEEDED))))
            return [InputPartition((rows, group)) for group in _groups(files)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some files."""
        if not isinstance(partition, InputPartition) or partition.value is None:
            return  # Spark reads one empty partition of a table without files
        rows, files = partition.value
        yield from rows.read(files)

    def _push(self, filters: Sequence[Any]) -> None:
        with plain_errors():
            self._pushed = condition_of(filters, row_schema(self._load(), self._options)[0])

    def _load(self) -> Snapshot:
        if self._snapshot is None:
            store, _ = executor_reach(self._options).open()
            self._snapshot = Snapshot.load(store, version=self._version)
        return self._snapshot


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the rows of a table, and then those of its new commits."""

    def __init__(self, options: Mapping[str, str], version: int | None) -> None:
        """Create the reader of a query; see `TableReader`."""
        self._options = dict(options)
        self._version = version
        self._opened: tuple[TableOffsets, TableRows] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The offset at which a new query starts."""
        with plain_errors():
            return self._open()[0].initial()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch."""
        with plain_errors():
            return self._open()[0].latest(start, limit)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit of the options."""
        with plain_errors():
            return self._open()[0].default_limit()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop at what is available now."""
        with plain_errors():
            self._open()[0].stop_at_now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files of a batch, in groups."""
        with plain_errors():
            offsets, rows = self._open()
            batch = offsets.batch(start, end)
            files = [] if batch is None else batch.files
            listed = [
                TableFile(path=file.path, values=file.values, rows=file.rows, size_bytes=file.size_bytes)
                for file in files
            ]
            return [InputPartition((rows, group)) for group in _groups(listed)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some files."""
        rows, files = partition.value
        yield from rows.read(files)

    def commit(self, end: dict[str, Any]) -> None:
        """Let the pin of the query follow. The position itself is in the checkpoint."""
        with plain_errors():
            self._open()[0].finish(end)

    def stop(self) -> None:
        """End the pin of the query, unless it has a name."""
        if self._opened is not None:
            self._opened[0].close()

    def _open(self) -> tuple[TableOffsets, TableRows]:
        if self._opened is None:
            table = executor_reach(self._options)
            offsets = TableOffsets(
                table,
                follow_options(self._options),
                batch_limits(self._options),
                pin=pin_options(self._options),
                version=self._version,
            )
            where = folded(self._options).get("where")
            self._opened = offsets, rows_of_table(table, offsets.snapshot, self._options, where=where)
        return self._opened


def rows_of_table(
    table: ExecutorReach, snapshot: Snapshot, options: Mapping[str, str], *, where: str | None
) -> TableRows:
    """How tasks read the rows for which a condition is true, with the columns of a snapshot."""
    schema, mapping = row_schema(snapshot, options)
    return TableRows(
        table=table,
        schema_json=schema_to_json(schema),
        mapping=mapping,
        where=where,
    )


def _changed_files(snapshot: Snapshot, named: Mapping[str, str]) -> list[TableFile]:
    version, timestamp = named.get("startingversion"), named.get("startingtimestamp")
    if (version is None) == (timestamp is None):
        raise ConfigurationError(
            "The changes of a table need exactly one start.",
            fix="Pass startingVersion or startingTimestamp; version 0 is the first one.",
        )
    if timestamp is not None:
        first = first_version_since(snapshot.store, to_epoch_ms(timestamp, up=True))
    else:
        first = whole(version or "", "startingVersion")
    return [
        TableFile(path=file.path, values=file.values, rows=file.rows, size_bytes=file.size_bytes)
        for file in ChangeDataScan(snapshot, starting_version=first).changed_files()
    ]


def _groups(files: Sequence[TableFile]) -> Iterator[list[dict[str, Any]]]:
    """The files of each task. The cores of this machine are the only ones that are known here."""
    total = sum((file.size_bytes or 0) + OPEN_BYTES for file in files)
    limit = min(TASK_BYTES, max(2 * OPEN_BYTES, -(-total // (os.cpu_count() or 1))))
    group: list[dict[str, Any]] = []
    filled = 0
    for file in files:
        weight = (file.size_bytes or 0) + OPEN_BYTES
        if group and filled + weight > limit:
            yield group
            group, filled = [], 0
        item: dict[str, Any] = {"path": file.path, "values": dict(file.values)}
        if not file.rows.chooses_all:
            item["rows"] = file.rows.to_document()
        group.append(item)
        filled += weight
    if group:
        yield group
