"""Classic single-file checkpoints (PROTOCOL.md, "Checkpoints", "V1 Spec").

The file is streamed batch by batch, so its size does not bound the table's; it replaces none, and is read
back before the hint names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA, action_rows, add_rows, remove_rows
from delta_core.checkpoint.create_only import created
from delta_core.checkpoint.read_back import Contents, delete_unchanged, latest_without, read_contents
from delta_core.errors import (
    CorruptLogError,
    DeltaWarning,
    ObjectExistsError,
    ObjectNotFoundError,
    StaleCommitError,
    StorageError,
    UnsupportedTableFeatureError,
    VerificationError,
)
from delta_core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint, write_last_checkpoint
from delta_core.log.log_path import checkpoint_path
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import ObjectInfo
from delta_core.table_features.surface import Surface
from delta_core.table_features.table_properties import WRITE_STATS_AS_STRUCT
from delta_core.transaction.stale_writer_guard import log_replaced

# Readers work a row group at a time: large enough for little overhead, small enough for little memory.
_ROW_GROUP_ROWS = 131_072


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A checkpoint, written now or found.

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

    Where the version has one, that one is read instead, and stays; only one that cannot be read is replaced.
    Expired tombstones are left out. A hint that cannot be written is only a warning: it is no part of
    the table. Requests: a look at the version's commit before and after, one write, one read of the footer
    and of two columns, the hint.

    Raises:
        UnsupportedTableFeatureError: the table uses what a checkpoint of ours cannot hold.
        StaleCommitError: the table at this place is no longer the snapshot's.
        VerificationError: the version is not what its checksum says; or the checkpoint there is of another
            state; or what was read back is not what was written, and the file is deleted if it is still
            ours and the log is read without it.
    """
    snapshot.require_writable(surface=Surface.CHECKPOINT, operation="write a checkpoint")
    _require_own_log(snapshot)
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
    path = checkpoint_path(snapshot.version)
    try:
        with created(snapshot.store, path, clock=snapshot.clock) as sink:
            written = _write(snapshot, sink)
        info = _read_back(snapshot, path, written)
    except ObjectExistsError:
        info = _of_another_writer(snapshot, path) or _replaced(snapshot, path)
    _write_hint(snapshot, info)
    return info


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What was handed to the store."""

    num_rows: int
    size_bytes: int


def _write(snapshot: Snapshot, sink: pa.NativeFile) -> _Written:
    num_rows = 0
    with pq.ParquetWriter(
        # The schema in Arrow's own form only makes the footer larger.
        sink,
        CHECKPOINT_SCHEMA,
        compression="snappy",
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        for batch in _grouped(_rows(snapshot)):
            writer.write_batch(batch, row_group_size=_ROW_GROUP_ROWS)
            num_rows += batch.num_rows
    return _Written(num_rows=num_rows, size_bytes=sink.tell())


def _of_another_writer(snapshot: Snapshot, path: str) -> CheckpointInfo | None:
    """The checkpoint that has the name; None when it cannot be read and may be replaced."""
    found = snapshot.store.head(path)
    try:
        contents = read_contents(snapshot.store, found)
    except CorruptLogError:
        if snapshot.segment.version_file is None:
            raise  # whether the log is still the one that was read cannot be told
        return None
    cause = contents.difference(snapshot)
    # It may be ours, of an attempt whose answer was lost, and the table another since.
    _require_own_log(snapshot)
    if cause is not None:
        raise VerificationError(
            f"The checkpoint {path!r} was written before, and does not hold the table's state.",
            cause=cause,
            fix="Find out which of the two is right: it was left as it is.",
        )
    # That it can be read does not say that it outlives a loss of power.
    snapshot.store.persist([path])
    return _info(snapshot, found, contents)


def _replaced(snapshot: Snapshot, path: str) -> CheckpointInfo:
    """A checkpoint written over one that cannot be read."""
    _require_own_log(snapshot)
    with snapshot.store.open_output(path) as sink:
        written = _write(snapshot, sink)
    return _read_back(snapshot, path, written)


def _read_back(snapshot: Snapshot, path: str, written: _Written) -> CheckpointInfo:
    """The checkpoint that was just written, or by which another writer has replaced it since."""
    store = snapshot.store
    try:
        found = store.head(path)
    except ObjectNotFoundError as error:
        raise _other_log(snapshot) or error from error
    is_ours = found.size_bytes == written.size_bytes
    contents, cause = None, None
    try:
        contents = read_contents(store, found)
        cause = contents.difference(snapshot)
    except CorruptLogError as error:
        cause = f"{error.problem} {error.cause}"
    if contents is not None and cause is None and is_ours and contents.num_rows != written.num_rows:
        cause = f"Expected {written.num_rows} actions, read back {contents.num_rows}."
    replaced = _other_log(snapshot)
    if replaced is None and cause is None and contents is not None:
        return _info(snapshot, found, contents)
    latest = latest_without(store, path) if is_ours else None
    # Nothing needs it where the table was dropped, and all else where it is the table's.
    unneeded = latest is not None and (replaced is not None or latest >= snapshot.version)
    deleted = unneeded and delete_unchanged(store, found)
    if replaced is not None:
        raise replaced
    raise VerificationError(
        f"The checkpoint {path!r} does not hold the table's state.",
        cause=cause or "",
        fix="It was deleted; check the disk and write it again."
        if deleted
        else "It was left as it is, since it is another writer's or the log is not read without it; check "
        "the disk, and restore it from a backup.",
    )


def _info(snapshot: Snapshot, found: ObjectInfo, contents: Contents) -> CheckpointInfo:
    return CheckpointInfo(
        version=snapshot.version,
        size=contents.num_rows,
        parts=1,
        size_bytes=found.size_bytes,
        num_add_files=contents.num_add_files,
    )


def _require_own_log(snapshot: Snapshot) -> None:
    replaced = _other_log(snapshot)
    if replaced is not None:
        raise replaced


def _other_log(snapshot: Snapshot) -> StaleCommitError | None:
    """The reason why the log is another table's now, or None. One request."""
    version_file = snapshot.segment.version_file
    if version_file is None:
        return None
    return log_replaced(snapshot.store, version_file, clock=snapshot.clock)


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
