"""The rows of a version's checkpoint (PROTOCOL.md, "Checkpoints", "Action Reconciliation").

The rows are created one row group at a time, so that the memory for writing does not grow with the table.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.actions.checkpoint_schema import add_rows, checkpoint_schema, remove_rows
from delta_core.checkpoint.parsed_columns import ParsedColumns
from delta_core.parquet.output import parquet_writer
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.parquet_format import ParquetFormat

# Readers process one row group at a time: large enough for little overhead, small enough for little memory.
ROW_GROUP_ROWS = 65_536

# The number of files that are parsed together. Up to _MAX_THREADS + 1 such batches are in memory.
_PIECE_ROWS = 32_768
_MAX_THREADS = 4

# Columns with mostly distinct values. With dictionary encoding, Arrow would fill a dictionary until it is too
# large, and then encode the same values again without it.
_UNIQUE = frozenset(
    {
        "add.path",
        "add.stats",
        "add.modificationTime",
        "add.size",
        "remove.path",
        "remove.deletionTimestamp",
        "add.deletionVector.pathOrInlineDv",
        "remove.deletionVector.pathOrInlineDv",
    }
)
_PLAIN = ParquetFormat()
_UNIQUE_BELOW = ("add.stats_parsed.minValues.", "add.stats_parsed.maxValues.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRows:
    """The rows of a snapshot's checkpoint.

    Attributes:
        snapshot: the version.
        parsed: the columns of parsed values; None if the table's properties do not ask for them.
    """

    snapshot: Snapshot
    parsed: ParsedColumns | None

    @classmethod
    def of(cls, snapshot: Snapshot) -> CheckpointRows:
        """The rows of a snapshot, with the columns that the table's properties ask for."""
        with_parsed = snapshot.properties.write_stats_as_struct
        return cls(snapshot=snapshot, parsed=ParsedColumns.of(snapshot) if with_parsed else None)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return checkpoint_schema(
            with_json_statistics=self.snapshot.properties.write_stats_as_json,
            statistics=None if self.parsed is None else self.parsed.statistics_type,
            partition_values=None if self.parsed is None else self.parsed.partition_type,
        )

    @property
    def parquet_format(self) -> ParquetFormat:
        """The Parquet options of the checkpoint's files, from the table's properties."""
        return ParquetFormat.of_log(self.snapshot.properties)

    def other_actions(self) -> list[Protocol | Metadata | SetTransaction | DomainMetadata]:
        """All actions other than file actions, without expired application transactions."""
        snapshot = self.snapshot
        transactions = unexpired_transactions(snapshot)
        return [snapshot.protocol, snapshot.metadata, *transactions, *snapshot.domain_metadata.values()]

    def file_groups(self) -> Iterator[pa.Table]:
        """The live files and then the unexpired tombstones, in groups of ROW_GROUP_ROWS.

        Another thread creates the next group while the caller writes the current one, so that decoding and
        encoding run on two cores. Close the iterator to stop early.

        Raises:
            CorruptLogError: the checkpoint from which the version is read cannot be decoded.
        """
        return _ahead(_grouped(self._file_rows()))

    def _file_rows(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        files = self.snapshot.files.stream_batches(rows=_PIECE_ROWS)
        for batch in files if self.parsed is None else _parsed(files, self.parsed):
            yield add_rows(batch, schema)
        for batch in self.snapshot.tombstones().to_batches():
            yield remove_rows(batch, schema)


def unexpired_transactions(snapshot: Snapshot) -> list[SetTransaction]:
    """The application transactions that are not older than the table's `setTransactionRetentionDuration`."""
    retention = snapshot.properties.set_transaction_retention_ms
    oldest = None if retention is None else snapshot.clock.now_ms() - retention
    return [
        transaction
        for transaction in snapshot.transactions.values()
        if oldest is None or transaction.last_updated_ms is None or transaction.last_updated_ms >= oldest
    ]


def _parsed(files: Iterator[pa.RecordBatch], columns: ParsedColumns) -> Iterator[pa.RecordBatch]:
    """The batches with their parsed columns, in the same order. Several batches are parsed in parallel."""
    waiting: deque[Future[pa.RecordBatch]] = deque()
    threads = min(_MAX_THREADS, os.cpu_count() or 1)
    with ThreadPoolExecutor(threads, "deltaward-parsing") as pool:
        for batch in files:
            waiting.append(pool.submit(columns.added_to, batch))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of ROW_GROUP_ROWS rows each, the last one shorter.

    The batches stay separate chunks, since a copy of every column would cost a part of the encoding time.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while rows + batch.num_rows >= ROW_GROUP_ROWS:
            missing = ROW_GROUP_ROWS - rows
            yield pa.Table.from_batches([*waiting, batch.slice(0, missing)])
            batch = batch.slice(missing)
            waiting, rows = [], 0
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def _ahead(groups: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same groups; another thread creates the next one while the caller uses the current one."""
    with ThreadPoolExecutor(1, "deltaward-checkpoint-rows") as pool:
        upcoming = pool.submit(next, groups, None)
        while (group := upcoming.result()) is not None:
            upcoming = pool.submit(next, groups, None)
            yield group


def _repeating(schema: pa.Schema) -> list[str]:
    """The leaves whose values repeat, so that a dictionary saves space."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    parquet_schema = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    leaves = (parquet_schema.column(index).path for index in range(len(parquet_schema)))
    return [leaf for leaf in leaves if leaf not in _UNIQUE and not leaf.startswith(_UNIQUE_BELOW)]


def write_parquet(
    sink: pa.NativeFile,
    schema: pa.Schema,
    groups: Iterable[pa.RecordBatch | pa.Table],
    *,
    parquet_format: ParquetFormat = _PLAIN,
) -> int:
    """Write rows as they arrive; each group of up to ROW_GROUP_ROWS rows becomes one row group.

    Args:
        sink: the output.
        schema: the schema of the rows.
        groups: the rows.
        parquet_format: the Parquet options, from the table's properties.

    Returns:
        The number of rows.
    """
    num_rows = 0
    with parquet_writer(
        # The Arrow schema in the footer would only make the footer larger.
        sink,
        schema,
        use_dictionary=_repeating(schema),
        store_schema=False,
        write_page_checksum=True,
        **parquet_format.writer_options(),
    ) as writer:
        for group in groups:
            writer.write(group, row_group_size=ROW_GROUP_ROWS)
            num_rows += group.num_rows
    return num_rows
