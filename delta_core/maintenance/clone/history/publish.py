"""Publishing a staged log file by file. At every moment readers see a version of the source, or no table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pyarrow as pa

from delta_core.checkpoint.create_if_absent import created
from delta_core.clock import Clock
from delta_core.errors import (
    AmbiguousWriteError,
    CloneDivergedError,
    DeltaWarning,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from delta_core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint, write_last_checkpoint
from delta_core.maintenance.clone.history.staged_log import StagedFile
from delta_core.storage.log_store import LogStore
from delta_core.storage.modified_time import set_modified_time

_PAUSES_SECONDS = (0.2, 1.0)
_CHUNK_BYTES = 8 << 20


def publish_log(
    files: Sequence[StagedFile], *, target: LogStore, is_new: bool, clock: Clock
) -> tuple[int, bool]:
    """Write the files of a log in the order of `files`. An existing commit is never replaced.

    A log that is published in part shows an older version of the source; a second call publishes the rest.
    Requests: one for each commit, two for each other file, and one for each modification time if the store
    accepts modification times.

    Args:
        files: in the order of `LogStaging.stage`.
        target: the clone's store.
        is_new: whether the clone had no log. Then files other than commits replace those that an interrupted
            clone left.
        clock: pauses between attempts.

    Returns:
        How many commits are new, and whether the store accepted the modification times.

    Raises:
        CloneDivergedError: another writer has written a version to the clone.
        StorageError: the store fails.
    """
    new_commits = 0
    keeps_times = True
    for file in files:
        if file.version is not None:
            new_commits += publish_commit(target, file.path, file.content.read_bytes(), clock=clock)
        else:
            _publish_other(target, file, replace=is_new, clock=clock)
        if file.modified_ms is not None:
            keeps_times = set_modified_time(target, file.path, file.modified_ms) and keeps_times
    return new_commits, keeps_times


def publish_commit(target: LogStore, path: str, data: bytes, *, clock: Clock) -> bool:
    """Create a commit, unless it exists with the same bytes; returns whether this call created it.

    Raises:
        CloneDivergedError: another writer has written the version.
        StorageError: the commit was not written, or the store did not confirm the write.
    """
    pauses = iter(_PAUSES_SECONDS)
    while True:
        try:
            target.put_if_absent(path, data)
            return True
        except (ObjectExistsError, AmbiguousWriteError) as error:
            # A store may report this although no object exists: after a lost response, or for two writers.
            existing = _content(target, path)
            if existing == data:
                target.persist([path])
                return False
            if existing is not None:
                raise diverged(target, path) from error
            pause_seconds = next(pauses, None)
            if pause_seconds is None:
                raise
        except StorageError as error:
            pause_seconds = next(pauses, None)
            if pause_seconds is None or not error.retryable:
                raise
        clock.sleep(pause_seconds)


def point_hint(target: LogStore, hint: LastCheckpoint | None) -> None:
    """Make `_last_checkpoint` name a published checkpoint, unless it names a later one. Two requests.

    A failed write is only a DeltaWarning, since readers do not need the hint.
    """
    if hint is None:
        return
    try:
        present = read_last_checkpoint(target)
        if present is None or present.version < hint.version:
            write_last_checkpoint(target, hint)
    except StorageError as error:
        warnings.warn(f"The file _last_checkpoint was not written: {error}", DeltaWarning, stacklevel=2)


def diverged(target: LogStore, path: str) -> CloneDivergedError:
    """The error for a clone whose log differs from the source's."""
    return CloneDivergedError(
        f"The log of the table at {target.uri} differs from the source's log.",
        cause=f"The file {path!r} differs from the source's, or the source no longer has it.",
        fix="Clone to another location.",
    )


def _publish_other(target: LogStore, file: StagedFile, *, replace: bool, clock: Clock) -> None:
    if not replace:
        try:
            target.head(file.path)
        except ObjectNotFoundError:
            pass
        else:
            return
    with pa.OSFile(str(file.content), "rb") as reader:
        if replace:
            with target.open_output(file.path) as writer:
                _copy(reader, writer)
            return
        try:
            with created(target, file.path, clock=clock) as writer:
                _copy(reader, writer)
        except ObjectExistsError:
            target.persist([file.path])


def _copy(reader: pa.NativeFile, writer: pa.NativeFile) -> None:
    while chunk := reader.read(_CHUNK_BYTES):
        writer.write(chunk)


def _content(target: LogStore, path: str) -> bytes | None:
    try:
        return target.read(path)
    except ObjectNotFoundError:
        return None
