"""Opening the log files of one version, without damaged files and despite a concurrent log cleanup."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from delta_core.actions import Metadata, Protocol
from delta_core.clock import Clock
from delta_core.errors import CorruptLogError, DeltaWarning, InvalidTableError, ObjectNotFoundError
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.checksum import VersionChecksum
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.log_segment import LogSegment, build_segment
from delta_core.replay.state import checkpoint_protocol_and_metadata
from delta_core.storage.log_store import LogStore

_OPENINGS = 3

ProtocolAndMetadata = tuple[Protocol | None, Metadata | None]
UnusableFiles = frozenset[tuple[str, ...]]
"""Names of checkpoints and log compaction files that are known to be damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLog:
    """The opened log files of one version.

    Attributes:
        segment: the version's log segment.
        commits: the bytes of the commits, oldest first; a log compaction file may replace some of them.
        checkpoint: the checkpoint, or None.
        protocol: the protocol of the version.
        metadata: the metadata of the version.
        unusable: damaged files that are ignored.
    """

    segment: LogSegment
    commits: tuple[CommitData, ...]
    checkpoint: CheckpointReader | None
    protocol: Protocol
    metadata: Metadata
    unusable: UnusableFiles = frozenset()


def open_log(
    store: LogStore,
    *,
    version: int | None,
    clock: Clock,
    unusable: UnusableFiles = frozenset(),
    segment: LogSegment | None = None,
) -> OpenLog:
    """Open the log files of a version (None: the latest) and find its protocol and metadata.

    A damaged checkpoint or log compaction file is ignored with a DeltaWarning, if the version can be read
    without it. Requests: those of `build_segment`, and one for each commit and each part of the checkpoint,
    in parallel on a remote store.

    Args:
        store: the table's store.
        version: the version.
        clock: waits between repeated listings.
        unusable: files that are known to be damaged.
        segment: the version's log segment, if it is known already.

    Raises:
        TableNotFoundError: the log has no commit and no checkpoint.
        VersionNotFoundError: the version does not exist or was cleaned up.
        LogGapError: a commit is missing.
        CorruptLogError: the log is damaged.
    """
    damage: CorruptLogError | None = None
    vanished: ObjectNotFoundError | None = None
    attempts = 0
    while attempts < _OPENINGS:
        try:
            if segment is None:
                segment = build_segment(store, version=version, unusable=unusable, clock=clock)
        except InvalidTableError as error:
            if damage is not None:
                raise damage from error
            raise
        try:
            commits, checkpoint = _fetch(store, segment)
            return _opened(store, segment, commits, checkpoint, unusable)
        except ObjectNotFoundError as error:
            # Log cleanup deleted the file after it was listed.
            vanished, attempts = error, attempts + 1
        except _Damaged as damaged:
            damage, unusable = damaged.error, unusable | damaged.files
            warn_damaged(damaged.error)
        segment = None
    assert vanished is not None
    raise vanished


def latest_protocol_and_metadata(
    commits: Sequence[CommitData], base: ProtocolAndMetadata
) -> ProtocolAndMetadata:
    """The latest protocol and metadata of `base` and the commits after it. Raises CorruptLogError.

    Searches the commits backwards until both are found.
    """
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for commit in reversed(commits):
        own = commit.protocol_and_metadata()
        protocol, metadata = protocol or own[0], metadata or own[1]
        if protocol is not None and metadata is not None:
            break
    return protocol or base[0], metadata or base[1]


def compaction_names(segment: LogSegment) -> UnusableFiles:
    """The names of the log compaction files in a segment."""
    return frozenset((item.info.path,) for item in segment.compactions)


def warn_damaged(error: CorruptLogError) -> None:
    """Warn that a damaged file is ignored."""
    warnings.warn(f"{error} The damaged file is ignored.", DeltaWarning, stacklevel=4)


def contradicting_checksum(checksum: VersionChecksum, differences: Sequence[str]) -> CorruptLogError:
    """The error for a version checksum that contradicts the log and on which a snapshot relied."""
    return CorruptLogError(
        f"The version checksum {checksum.path!r} contradicts the log.",
        cause=f"The differences are: {'; '.join(differences)}.",
        fix="Restore the log from a backup, or delete the checksum if the log is right.",
    )


class _Damaged(Exception):  # noqa: N818 - a signal inside this module
    """Damaged files, without which the version may still be readable."""

    def __init__(self, error: CorruptLogError, files: UnusableFiles) -> None:
        self.error = error
        self.files = files
        super().__init__(error)


def _fetch(store: LogStore, segment: LogSegment) -> tuple[tuple[CommitData, ...], CheckpointReader | None]:
    files, checkpoint = segment.replayed_files, segment.checkpoint
    try:
        if checkpoint is None:
            return read_commits(store, files), None
        if not store.remote:
            return read_commits(store, files), _open_checkpoint(store, segment)
        with ThreadPoolExecutor(1, thread_name_prefix="deltaward-checkpoint") as pool:
            opening = pool.submit(_open_checkpoint, store, segment)
            return read_commits(store, files), opening.result()
    except CorruptLogError as error:
        if segment.compactions:
            raise _Damaged(error, compaction_names(segment)) from error
        raise


def _open_checkpoint(store: LogStore, segment: LogSegment) -> CheckpointReader:
    assert segment.checkpoint is not None
    try:
        return CheckpointReader.open(store, segment.checkpoint)
    except CorruptLogError as error:
        raise _Damaged(error, frozenset({segment.checkpoint.names})) from error


def _opened(
    store: LogStore,
    segment: LogSegment,
    commits: tuple[CommitData, ...],
    checkpoint: CheckpointReader | None,
    unusable: UnusableFiles,
) -> OpenLog:
    base: ProtocolAndMetadata = (None, None)
    if checkpoint is not None:
        try:
            base = checkpoint_protocol_and_metadata(checkpoint)
            _require_complete(checkpoint, base)
        except CorruptLogError as error:
            raise _Damaged(error, frozenset({checkpoint.files.names})) from error
    try:
        protocol, metadata = latest_protocol_and_metadata(commits, base)
    except CorruptLogError as error:
        if not segment.compactions:
            raise
        raise _Damaged(error, compaction_names(segment)) from error
    if protocol is None or metadata is None:
        name = "protocol" if protocol is None else "metaData"
        raise CorruptLogError(
            f"Version {segment.version} of {store.uri!r} has no {name!r} action.",
            cause="The log is incomplete.",
            fix="Restore the log from a backup.",
        )
    return OpenLog(
        segment=segment,
        commits=commits,
        checkpoint=checkpoint,
        protocol=protocol,
        metadata=metadata,
        unusable=unusable,
    )


def _require_complete(checkpoint: CheckpointReader, base: ProtocolAndMetadata) -> None:
    """Refuse a checkpoint without protocol or metadata: both are required (PROTOCOL.md, "Checkpoints")."""
    if None in base:
        missing = "protocol" if base[0] is None else "metaData"
        raise CorruptLogError(
            f"The checkpoint {checkpoint.files.names[0]!r} is incomplete.",
            cause=f"It has no {missing!r} action.",
            fix="Delete the checkpoint if the commits before it still exist.",
        )
