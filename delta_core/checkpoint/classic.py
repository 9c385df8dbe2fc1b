"""Classic single-file checkpoints (PROTOCOL.md, "Checkpoints", "V1 Spec").

The file is streamed batch by batch, so memory does not limit the size of the table. It replaces no checkpoint
that can be read, and it is read back before `_last_checkpoint` refers to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from delta_core.actions.checkpoint_schema import action_rows
from delta_core.checkpoint.checkpoint_contents import (
    Contents,
    delete_if_unchanged,
    latest_version_without,
    read_contents,
)
from delta_core.checkpoint.create_if_absent import created
from delta_core.checkpoint.preconditions import replaced_log_error, require_checksum_agreement
from delta_core.checkpoint.rows import CheckpointRows, write_parquet
from delta_core.checkpoint.update_last_checkpoint import point_hint_to
from delta_core.errors import CorruptLogError, ObjectExistsError, ObjectNotFoundError, VerificationError
from delta_core.log.last_checkpoint import LastCheckpoint
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import LogFileKind, checkpoint_path
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import ObjectInfo
from delta_core.table_features.feature import WriterKind


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A checkpoint that was written, or that existed before.

    Attributes:
        size: number of actions.
        parts: number of files.
        size_bytes: total size of the files.
        num_add_files: number of live files.
    """

    version: int
    size: int
    parts: int
    size_bytes: int
    num_add_files: int


def write_checkpoint(snapshot: Snapshot) -> CheckpointInfo:
    """Write a checkpoint of a snapshot's version, read it back, and update `_last_checkpoint`.

    If the version has a checkpoint already, it is read and kept; only a checkpoint that cannot be read is
    replaced. Expired tombstones are omitted. A failed write of `_last_checkpoint` is only a warning, since
    the file is a hint. Requests: one check of the version's commit before and one after, one write, reading
    the footer and two columns, and `_last_checkpoint`.

    Raises:
        UnsupportedTableFeatureError: the table uses a feature whose checkpoints this library cannot write.
        StaleCommitError: another table has replaced the snapshot's table at this location.
        VerificationError: the version contradicts its checksum; or an existing checkpoint has another state;
            or the checkpoint that was read back is not the one that was written. In the last case it is
            deleted, if it is still this process's file and the table can be read without it.
    """
    snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="write a checkpoint")
    _require_own_log(snapshot)
    require_checksum_agreement(snapshot)
    path = checkpoint_path(snapshot.version)
    try:
        with created(snapshot.store, path, clock=snapshot.clock) as sink:
            written = _write(snapshot, sink)
        info = _read_back(snapshot, path, written)
    except ObjectExistsError:
        info = _existing_checkpoint(snapshot, path) or _replaced(snapshot, path)
    point_hint_to(
        snapshot,
        LastCheckpoint(
            version=info.version,
            size=info.size,
            size_bytes=info.size_bytes,
            num_add_files=info.num_add_files,
        ),
    )
    return info


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """The numbers of rows and bytes that were written to the store."""

    num_rows: int
    size_bytes: int


def _write(snapshot: Snapshot, sink: pa.NativeFile) -> _Written:
    rows = CheckpointRows.of(snapshot)
    # Protocol and metadata are in a row group without files, so that readers find them quickly.
    others = action_rows(rows.other_actions(), rows.schema)
    groups = chain([others], rows.file_groups())
    num_rows = write_parquet(sink, rows.schema, groups, parquet_format=rows.parquet_format)
    return _Written(num_rows=num_rows, size_bytes=sink.tell())


def _existing_checkpoint(snapshot: Snapshot, path: str) -> CheckpointInfo | None:
    """The existing checkpoint at `path`; None when it cannot be read and may be replaced."""
    existing = snapshot.store.head(path)
    try:
        contents = read_contents(snapshot.store, _files(snapshot, existing), decode_all=True)
    except CorruptLogError:
        if snapshot.segment.version_file is None:
            raise  # without the version's commit nothing shows whether the log was replaced
        return None
    cause = contents.difference(snapshot)
    # The existing file may be from a lost attempt of this call, and the table may have been replaced since.
    _require_own_log(snapshot)
    if cause is not None:
        raise VerificationError(
            f"The existing checkpoint {path!r} does not hold the table's state.",
            cause=cause,
            fix="Find out whether the checkpoint or the log is right. The checkpoint was not changed.",
        )
    # The checkpoint can be read, but may not be durable yet.
    snapshot.store.persist([path])
    return checkpoint_info(snapshot, contents)


def _replaced(snapshot: Snapshot, path: str) -> CheckpointInfo:
    """Write a checkpoint over one that cannot be read, and describe the new one."""
    _require_own_log(snapshot)
    with snapshot.store.open_output(path) as sink:
        written = _write(snapshot, sink)
    return _read_back(snapshot, path, written)


def _read_back(snapshot: Snapshot, path: str, written: _Written) -> CheckpointInfo:
    """Read back the checkpoint that was just written, or the one with which another writer replaced it."""
    store = snapshot.store
    try:
        current = store.head(path)
    except ObjectNotFoundError as error:
        raise replaced_log_error(snapshot) or error from error
    is_own = current.size_bytes == written.size_bytes
    contents, cause = None, None
    try:
        contents = read_contents(store, _files(snapshot, current))
        cause = contents.difference(snapshot)
    except CorruptLogError as error:
        cause = f"{error.problem} {error.cause}"
    if contents is not None and cause is None and is_own and contents.num_rows != written.num_rows:
        cause = f"{written.num_rows} actions were written, {contents.num_rows} were read back."
    replaced = replaced_log_error(snapshot)
    if replaced is None and cause is None and contents is not None:
        return checkpoint_info(snapshot, contents)
    latest = latest_version_without(store, path) if is_own else None
    # The checkpoint is unneeded if the table was replaced, or if the log gives the version without it.
    unneeded = latest is not None and (replaced is not None or latest >= snapshot.version)
    deleted = unneeded and delete_if_unchanged(store, current)
    if replaced is not None:
        raise replaced
    raise VerificationError(
        f"The checkpoint {path!r} does not hold the table's state.",
        cause=cause or "",
        fix="The checkpoint was deleted. Check the storage and write the checkpoint again."
        if deleted
        else "Check the storage, and restore the checkpoint from a backup. It was not deleted, since another "
        "writer wrote it or the table cannot be read without it.",
    )


def _files(snapshot: Snapshot, info: ObjectInfo) -> CheckpointFiles:
    return CheckpointFiles(version=snapshot.version, kind=LogFileKind.CLASSIC_CHECKPOINT, parts=(info,))


def checkpoint_info(snapshot: Snapshot, contents: Contents) -> CheckpointInfo:
    """The description of a checkpoint that was read back."""
    return CheckpointInfo(
        version=snapshot.version,
        size=contents.num_rows,
        parts=contents.num_files,
        size_bytes=contents.size_bytes,
        num_add_files=contents.num_add_files,
    )


def _require_own_log(snapshot: Snapshot) -> None:
    replaced = replaced_log_error(snapshot)
    if replaced is not None:
        raise replaced
