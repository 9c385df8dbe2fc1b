"""Classic single-file checkpoints (PROTOCOL.md, "Checkpoints", "V1 Spec").

The file is streamed batch by batch, so its size does not bound the table's; it is read back before the
hint names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA, action_rows, add_rows, remove_rows
from delta_core.errors import (
    CorruptLogError,
    DeltaWarning,
    StorageError,
    UnsupportedTableFeatureError,
    VerificationError,
)
from delta_core.log.checkpoint_reader import CheckpointPart, CheckpointReader
from delta_core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint, write_last_checkpoint
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import LogFileKind, checkpoint_path
from delta_core.replay.state import checkpoint_protocol_and_metadata
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.table_properties import WRITE_STATS_AS_STRUCT
from delta_core.transaction.stale_writer_guard import log_replaced

# Readers work a row group at a time: large enough for little overhead, small enough for little memory.
_ROW_GROUP_ROWS = 131_072


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A checkpoint that was written.

    Attributes:
        size: number of actions.
        parts: number of files.
        size_bytes: size of the files together.
        num_add_files: number of live files.
    """

    version: int
    size: int
    parts: int
    size_bytes: int
    num_add_files: int


def write_checkpoint(snapshot: Snapshot) -> CheckpointInfo:
    """Write a checkpoint of a snapshot's version, read it back, and point the hint at it.

    Expired tombstones are left out. A hint that cannot be written is only a warning: it is no part of
    the table. Requests: a look at the version's commit, one write, one read of the footer and of two
    columns, the hint.

    Raises:
        UnsupportedTableFeatureError: the table uses what a checkpoint of ours cannot hold.
        StaleCommitError: the table at this place is no longer the snapshot's.
        VerificationError: the version is not what its checksum says; or what was read back is not what was
            written, and the file is deleted.
    """
    snapshot.require_writable(operation="write a checkpoint")
    version_file = snapshot.segment.version_file
    replaced = (
        None if version_file is None else log_replaced(snapshot.store, version_file, clock=snapshot.clock)
    )
    if replaced is not None:
        raise replaced
    if snapshot.checksum_discrepancies:
        # Log cleanup would make it the only account of the table.
        raise VerificationError(
            f"No checkpoint is written of version {snapshot.version}: it is not what its checksum says.",
            cause="; ".join(snapshot.checksum_discrepancies),
            fix="Restore the log from a backup, or delete the checksum if the log is right.",
        )
    if snapshot.properties.write_stats_as_struct:
        raise UnsupportedTableFeatureError(
            f"Cannot write a checkpoint: the table sets {WRITE_STATS_AS_STRUCT.key}.",
            cause="Statistics as columns (stats_parsed) are not written by this version of deltaward.",
            fix=f"Set {WRITE_STATS_AS_STRUCT.key} to false, or write checkpoints with another engine.",
        )
    store, path = snapshot.store, checkpoint_path(snapshot.version)
    size = 0
    with (
        store.open_output(path) as sink,
        # The schema in Arrow's own form only makes the footer larger.
        pq.ParquetWriter(
            sink, CHECKPOINT_SCHEMA, compression="snappy", store_schema=False, write_page_checksum=True
        ) as writer,
    ):
        for batch in _grouped(_rows(snapshot)):
            writer.write_batch(batch, row_group_size=_ROW_GROUP_ROWS)
            size += batch.num_rows
    info = CheckpointInfo(
        version=snapshot.version,
        size=size,
        parts=1,
        size_bytes=store.head(path).size_bytes,
        num_add_files=snapshot.files.num_files,
    )
    try:
        _verify(snapshot, path, info)
    except (VerificationError, CorruptLogError):
        store.delete(path)
        raise
    _write_hint(snapshot, info)
    return info


def _rows(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    yield action_rows(_other_actions(snapshot))
    with_statistics = snapshot.properties.write_stats_as_json
    for batch in snapshot.files.batches():
        if not with_statistics:
            index = batch.schema.get_field_index("stats")
            batch = batch.set_column(index, batch.schema.field(index), pa.nulls(batch.num_rows, pa.string()))
        yield add_rows(batch)
    for batch in snapshot.tombstones().to_batches():
        yield remove_rows(batch)


def _other_actions(
    snapshot: Snapshot,
) -> list[Protocol | Metadata | SetTransaction | DomainMetadata]:
    retention = snapshot.properties.set_transaction_retention_ms
    oldest = None if retention is None else snapshot.clock.now_ms() - retention
    transactions = [
        transaction
        for transaction in snapshot.transactions.values()
        if oldest is None or transaction.last_updated_ms is None or transaction.last_updated_ms >= oldest
    ]
    return [snapshot.protocol, snapshot.metadata, *transactions, *snapshot.domain_metadata.values()]


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Joins small batches; the first one, with protocol and metadata, stays alone to be found quickly."""
    yield next(batches)
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ROW_GROUP_ROWS:
            yield pa.concat_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def _verify(snapshot: Snapshot, path: str, info: CheckpointInfo) -> None:
    part = CheckpointPart(snapshot.store, snapshot.store.head(path))
    files = CheckpointFiles(version=info.version, kind=LogFileKind.CLASSIC_CHECKPOINT, parts=())
    found = checkpoint_protocol_and_metadata(CheckpointReader(files, [part]))
    count = total = 0
    for group in part.row_groups_with("add"):
        for rows in part.stream(group, "add", ["path", "size"]):
            count += len(rows) - pc.struct_field(rows, "path").null_count
            total += pc.sum(pc.struct_field(rows, "size")).as_py() or 0
    wanted = (snapshot.protocol, snapshot.metadata, info.size, info.num_add_files, snapshot.files.total_bytes)
    if (*found, part.metadata.num_rows, count, total) != wanted:
        raise VerificationError(
            f"The checkpoint {path!r} does not hold the table's state.",
            cause=f"Expected {info.num_add_files} files and {info.size} actions, read back {count} and "
            f"{part.metadata.num_rows}.",
            fix="It was deleted; check the disk and write it again.",
        )


def _write_hint(snapshot: Snapshot, info: CheckpointInfo) -> None:
    try:
        earlier = read_last_checkpoint(snapshot.store)
        if earlier is not None and earlier.version > info.version and earlier.version <= _newest(snapshot):
            return
        write_last_checkpoint(
            snapshot.store,
            LastCheckpoint(
                version=info.version,
                size=info.size,
                size_bytes=info.size_bytes,
                num_add_files=info.num_add_files,
            ),
        )
    except StorageError as error:
        warnings.warn(
            f"The hint to the newest checkpoint was not written: {error}", DeltaWarning, stacklevel=3
        )


def _newest(snapshot: Snapshot) -> int:
    return snapshot.refresh().version
