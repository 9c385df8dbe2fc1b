"""Classic single-file checkpoints (PROTOCOL.md, "Checkpoints", "V1 Spec").

The file is streamed batch by batch, so its size does not bound the table's; it replaces none, and is read
back before the hint names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from delta_core.actions.checkpoint_schema import action_rows
from delta_core.checkpoint.create_only import created
from delta_core.checkpoint.hint import point_hint_to
from delta_core.checkpoint.preconditions import other_log as _other_log
from delta_core.checkpoint.preconditions import require_as_its_checksum_says
from delta_core.checkpoint.read_back import Contents, delete_unchanged, latest_without, read_contents
from delta_core.checkpoint.rows import CheckpointRows, write_parquet
from delta_core.errors import CorruptLogError, ObjectExistsError, ObjectNotFoundError, VerificationError
from delta_core.log.last_checkpoint import LastCheckpoint
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import LogFileKind, checkpoint_path
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import ObjectInfo
from delta_core.table_features.writer_kind import WriterKind


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
    snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="write a checkpoint")
    _require_own_log(snapshot)
    require_as_its_checksum_says(snapshot)
    path = checkpoint_path(snapshot.version)
    try:
        with created(snapshot.store, path, clock=snapshot.clock) as sink:
            written = _write(snapshot, sink)
        info = _read_back(snapshot, path, written)
    except ObjectExistsError:
        info = _of_another_writer(snapshot, path) or _replaced(snapshot, path)
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
    """What was handed to the store."""

    num_rows: int
    size_bytes: int


def _write(snapshot: Snapshot, sink: pa.NativeFile) -> _Written:
    rows = CheckpointRows.of(snapshot)
    # Protocol and metadata stay alone, to be found quickly.
    others = action_rows(rows.other_actions(), rows.schema)
    groups = chain([others], rows.file_groups())
    num_rows = write_parquet(sink, rows.schema, groups, encoded=rows.encoded)
    return _Written(num_rows=num_rows, size_bytes=sink.tell())


def _of_another_writer(snapshot: Snapshot, path: str) -> CheckpointInfo | None:
    """The checkpoint that has the name; None when it cannot be read and may be replaced."""
    found = snapshot.store.head(path)
    try:
        contents = read_contents(snapshot.store, _files(snapshot, found), decode_all=True)
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
    return checkpoint_info(snapshot, contents)


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
        contents = read_contents(store, _files(snapshot, found))
        cause = contents.difference(snapshot)
    except CorruptLogError as error:
        cause = f"{error.problem} {error.cause}"
    if contents is not None and cause is None and is_ours and contents.num_rows != written.num_rows:
        cause = f"Expected {written.num_rows} actions, read back {contents.num_rows}."
    replaced = _other_log(snapshot)
    if replaced is None and cause is None and contents is not None:
        return checkpoint_info(snapshot, contents)
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


def _files(snapshot: Snapshot, found: ObjectInfo) -> CheckpointFiles:
    return CheckpointFiles(version=snapshot.version, kind=LogFileKind.CLASSIC_CHECKPOINT, parts=(found,))


def checkpoint_info(snapshot: Snapshot, contents: Contents) -> CheckpointInfo:
    """What is said of a checkpoint that was read back."""
    return CheckpointInfo(
        version=snapshot.version,
        size=contents.num_rows,
        parts=contents.num_files,
        size_bytes=contents.size_bytes,
        num_add_files=contents.num_add_files,
    )


def _require_own_log(snapshot: Snapshot) -> None:
    replaced = _other_log(snapshot)
    if replaced is not None:
        raise replaced
