"""The rows of a version's checkpoint (PROTOCOL.md, "Checkpoints", "Action Reconciliation").

They are made group by group, so that writing them takes no memory that grows with the table.
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
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.parquet_output import parquet_writer
from delta_core.table_features.parquet_format import ParquetFormat

# Readers work a row group at a time: large enough for little overhead, small enough for little memory.
ROW_GROUP_ROWS = 65_536

# So many files are parsed together, and so many times that are in memory.
_PIECE_ROWS = 32_768
_MAX_THREADS = 4

# Values that hardly ever occur again. Arrow fills a dictionary with them until it is too large, and then
# encodes what it has once more.
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
        snapshot: whose.
        parsed: what its files have in columns' types; None where the table does not want that.
    """

    snapshot: Snapshot
    parsed: ParsedColumns | None

    @classmethod
    def of(cls, snapshot: Snapshot) -> CheckpointRows:
        """Those that the table's properties ask for."""
        wanted = snapshot.properties.write_stats_as_struct
        return cls(snapshot=snapshot, parsed=ParsedColumns.of(snapshot) if wanted else None)

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        return checkpoint_schema(
            with_json_statistics=self.snapshot.properties.write_stats_as_json,
            statistics=None if self.parsed is None else self.parsed.statistics_type,
            partition_values=None if self.parsed is None else self.parsed.partition_type,
        )

    @property
    def encoded(self) -> ParquetFormat:
        """What their files are written with."""
        return ParquetFormat.of_log(self.snapshot.properties)

    def other_actions(self) -> list[Protocol | Metadata | SetTransaction | DomainMetadata]:
        """All that are no files, without expired application transactions."""
        snapshot = self.snapshot
        transactions = unexpired_transactions(snapshot)
        return [snapshot.protocol, snapshot.metadata, *transactions, *snapshot.domain_metadata.values()]

    def file_groups(self) -> Iterator[pa.Table]:
        """The live files, and then the tombstones that have not expired, ROW_GROUP_ROWS at a time.

        The next rows are made while the caller writes those that it has: decoding keeps one core busy and
        encoding another. Close the iterator to stop early.

        Raises:
            CorruptLogError: the checkpoint that the version is read from cannot be decoded.
        """
        return _ahead(_grouped(self._file_rows()))

    def _file_rows(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        files = self.snapshot.files.passing(rows=_PIECE_ROWS)
        for batch in files if self.parsed is None else _parsed(files, self.parsed):
            yield add_rows(batch, schema)
        for batch in self.snapshot.tombstones().to_batches():
            yield remove_rows(batch, schema)


def unexpired_transactions(snapshot: Snapshot) -> list[SetTransaction]:
    """The application transactions without those older than the table's `setTransactionRetentionDuration`."""
    retention = snapshot.properties.set_transaction_retention_ms
    oldest = None if retention is None else snapshot.clock.now_ms() - retention
    return [
        transaction
        for transaction in snapshot.transactions.values()
        if oldest is None or transaction.last_updated_ms is None or transaction.last_updated_ms >= oldest
    ]


def _parsed(files: Iterator[pa.RecordBatch], columns: ParsedColumns) -> Iterator[pa.RecordBatch]:
    """Batches with what is parsed, in their order. Parsing keeps one core busy; several batches, several."""
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
    """Small batches together, so that row groups are neither many nor larger than ROW_GROUP_ROWS.

    They are not joined to one: a copy of every column would take as long as some of the encoding.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while rows + batch.num_rows >= ROW_GROUP_ROWS:
            taken = ROW_GROUP_ROWS - rows
            yield pa.Table.from_batches([*waiting, batch.slice(0, taken)])
            batch = batch.slice(taken)
            waiting, rows = [], 0
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def _ahead(groups: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same, the next one made by another thread while the caller has this one."""
    with ThreadPoolExecutor(1, "deltaward-checkpoint-rows") as pool:
        coming = pool.submit(next, groups, None)
        while (group := coming.result()) is not None:
            coming = pool.submit(next, groups, None)
            yield group


def _repeating(schema: pa.Schema) -> list[str]:
    """The leaves with values that occur again: a dictionary of paths is work for nothing."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    found = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    leaves = (found.column(index).path for index in range(len(found)))
    return [leaf for leaf in leaves if leaf not in _UNIQUE and not leaf.startswith(_UNIQUE_BELOW)]


def write_parquet(
    sink: pa.NativeFile,
    schema: pa.Schema,
    groups: Iterable[pa.RecordBatch | pa.Table],
    *,
    encoded: ParquetFormat = _PLAIN,
) -> int:
    """Write rows as they come, a row group for each part that is not longer than ROW_GROUP_ROWS.

    Args:
        sink: where to.
        schema: of the rows.
        groups: the rows.
        encoded: how, by the table's properties.

    Returns:
        How many rows.
    """
    num_rows = 0
    with parquet_writer(
        # The schema in Arrow's own form only makes the footer larger.
        sink,
        schema,
        use_dictionary=_repeating(schema),
        store_schema=False,
        write_page_checksum=True,
        **encoded.writer_options(),
    ) as writer:
        for group in groups:
            writer.write(group, row_group_size=ROW_GROUP_ROWS)
            num_rows += group.num_rows
    return num_rows
