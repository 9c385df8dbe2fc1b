"""Opening the files of one version, around what is damaged and what log cleanup takes away meanwhile."""

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
"""Names of checkpoints and log compaction files that turned out to be damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLog:
    """The files of one version, open.

    Attributes:
        commits: their bytes, oldest first; a log compaction file may stand for some of them.
        unusable: what was found to be damaged and passed over.
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
    """Open the files of a version (None: the latest) and find its protocol and metadata.

    A damaged checkpoint or compaction is passed over with a DeltaWarning as long as the log reaches back
    far enough without it. Requests: those of `build_segment`, and one for each commit and each part of the
    checkpoint, side by side where the store is remote.

    Args:
        store: the table's store.
        version: the version.
        clock: paces repeated listings.
        unusable: files that are known to be damaged.
        segment: the version's files if they have been listed already.

    Raises:
        TableNotFoundError: no table there.
        VersionNotFoundError: no such version.
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
            # Log cleanup took the file after it was listed.
            vanished, attempts = error, attempts + 1
        except _Damaged as found:
            damage, unusable = found.error, unusable | found.files
            warn_damaged(found.error)
        segment = None
    assert vanished is not None
    raise vanished


def latest_protocol_and_metadata(
    commits: Sequence[CommitData], base: ProtocolAndMetadata
) -> ProtocolAndMetadata:
    """The newest of the two, looking backwards and no further than needed. Raises CorruptLogError."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for commit in reversed(commits):
        found = commit.protocol_and_metadata()
        protocol, metadata = protocol or found[0], metadata or found[1]
        if protocol is not None and metadata is not None:
            break
    return protocol or base[0], metadata or base[1]


def compaction_names(segment: LogSegment) -> UnusableFiles:
    """The log compaction files that a segment is read from."""
    return frozenset((item.info.path,) for item in segment.compactions)


def warn_damaged(error: CorruptLogError) -> None:
    """Say what is passed over."""
    warnings.warn(f"{error} It is passed over.", DeltaWarning, stacklevel=4)


def contradicting_checksum(checksum: VersionChecksum, wrong: Sequence[str]) -> CorruptLogError:
    """The error of a version checksum that vouched for something else than the log has."""
    return CorruptLogError(
        f"The version checksum {checksum.path!r} contradicts the log.",
        cause="; ".join(wrong),
        fix="Restore the log from a backup, or delete the checksum if the log is right.",
    )


class _Damaged(Exception):  # noqa: N818 - a signal inside this module
    """Files that the version can perhaps be read without."""

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


def _require_complete(checkpoint: CheckpointReader, found: ProtocolAndMetadata) -> None:
    """Every checkpoint holds both (PROTOCOL.md, "Checkpoints"); one that does not cannot be trusted."""
    if None in found:
        raise CorruptLogError(
            f"The checkpoint {checkpoint.files.names[0]!r} is incomplete.",
            cause=f"It has no {'protocol' if found[0] is None else 'metaData'!r} action.",
            fix="Delete the checkpoint if the commits before it still exist.",
        )
