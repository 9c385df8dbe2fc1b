"""Deletes log files that no promised version needs (PROTOCOL.md, "Metadata Cleanup")."""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.checkpoint.protected_log import may_cut_at
from delta_core.checkpoint.sidecar_cleanup import unneeded_sidecars
from delta_core.clock import Clock
from delta_core.errors import CorruptLogError
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.listing import CheckpointFiles, LogListing, list_log
from delta_core.log.log_path import LOG_DIRECTORY, LogFileKind, LogPath
from delta_core.replay.state import checkpoint_protocol_and_metadata
from delta_core.snapshot.commit_time import CommitTimes
from delta_core.snapshot.pins import PinnedVersion, pins_in_force
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import without_cache
from delta_core.storage.log_store import ObjectInfo
from delta_core.table_features.table_properties import DAY_MS
from delta_core.table_features.writer_kind import WriterKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanup:
    """What was deleted, or with a dry run would be.

    Attributes:
        cutoff_ms: versions committed at this time or later stay readable, and the one before them.
        checkpoint_version: the oldest version that stays; None when nothing may be deleted.
        files: the deleted objects, in the order of deletion.
        pins: what stays, of that which is too old, for readers that have pinned a version.
    """

    cutoff_ms: int
    checkpoint_version: int | None
    files: tuple[ObjectInfo, ...]
    pins: tuple[PinnedVersion, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Size of the files together."""
        return sum(info.size_bytes for info in self.files)


def cleanup_expired_logs(
    snapshot: Snapshot,
    *,
    clock: Clock | None = None,
    dry_run: bool = False,
    retention_ms: int | None = None,
) -> LogCleanup:
    """Delete the log before the newest checkpoint that every version within retention can start from.

    Every version that is not older than `delta.logRetentionDuration` stays readable, so do that
    checkpoint, its commit file and all commits after it. How old they are goes by this machine's clock or
    by the store's newest log file, whichever is earlier. The checkpoint is opened before anything is
    deleted. A version that a reader has pinned stays readable, too, as do all after it. Sidecars that no
    checkpoint names any more go with them, see `sidecar_cleanup`. A log that is protected because a feature
    was dropped stays where it would not go in one go and is not all known here, see `protected_log`. Whether
    to clean up at all (`delta.enableExpiredLogCleanup`) is the caller's decision.

    Requests: four listings, one for each pin, the checkpoint's footer and those of its sidecars, one deletion
    per file; where there are old sidecars one more listing, and opening every checkpoint that is left; a few
    commits where they carry their time; in a protected log what would be deleted.

    Args:
        snapshot: the newest version of the table.
        clock: where time comes from; the snapshot's when None.
        dry_run: only say what would go.
        retention_ms: how long versions stay instead of the table's retention, which counts from midnight
            (UTC), this one from now.

    Raises:
        LeaseFileError: a pin cannot be read; nothing is deleted.
        UnsupportedTableFeatureError: the table uses a feature that constrains the cleanup.
    """
    snapshot.require_writable(writer_kind=WriterKind.CLEANUP, operation="clean up the log")
    store = snapshot.store
    listing = list_log(store)
    # A clock that is ahead makes young versions old; the store's own time has come at least this far.
    now_ms = min((clock or snapshot.clock).now_ms(), _store_time_ms(listing))
    if retention_ms is None:
        cutoff_ms = (now_ms - snapshot.properties.log_retention_ms) // DAY_MS * DAY_MS
    else:
        cutoff_ms = now_ms - retention_ms
    times = CommitTimes(store, listing)
    expired = times.until(cutoff_ms)
    cutoff_version = listing.commits[expired - 1].version if expired else -1
    pins = pins_in_force(store, store_now_ms=_store_time_ms(listing)) if expired else ()
    holding = tuple(pin for pin in pins if pin.version < cutoff_version)
    cutoff_version = min((cutoff_version, *(pin.version for pin in holding)))
    kept = next(
        (
            item.version
            for item in reversed(listing.checkpoints)
            if item.version <= cutoff_version and _is_sound(snapshot, item)
        ),
        None,
    )
    if kept is None or not may_cut_at(snapshot, listing, kept):
        return LogCleanup(cutoff_ms=cutoff_ms, checkpoint_version=None, files=(), pins=holding)
    files = []
    for info in store.list_directory(LOG_DIRECTORY):
        path = LogPath.parse(info.path)
        if path is None:
            continue
        is_compacted = path.kind is LogFileKind.COMPACTED
        if path.version < kept or (is_compacted and path.version == kept):
            files.append(info)
    if not dry_run:
        for info in files:
            store.delete(info.path)
    # After those that name them: whoever is interrupted in between leaves files that nobody needs.
    sidecars = unneeded_sidecars(store, known=listing.checkpoints, from_version=kept, now_ms=now_ms)
    if not dry_run:
        for info in sidecars:
            store.delete(info.path)
    files += sidecars
    return LogCleanup(cutoff_ms=cutoff_ms, checkpoint_version=kept, files=tuple(files), pins=holding)


def _store_time_ms(listing: LogListing) -> int:
    """When the store wrote the newest commit, or the newest checkpoint, which is mostly just now."""
    newest = [file.info for file in listing.commits[-1:]]
    newest += [part for files in listing.checkpoints[-1:] for part in files.parts]
    return max((info.modified_ms for info in newest), default=0)


def _is_sound(snapshot: Snapshot, files: CheckpointFiles) -> bool:
    """Whether a checkpoint can be read: all that it replaces is about to be deleted."""
    try:
        # What this machine has kept of it says nothing about what others can still read.
        reader = CheckpointReader.open(without_cache(snapshot.store), files)
        protocol, metadata = checkpoint_protocol_and_metadata(reader)
        # Readers decode what they need, so damage in any column is some reader's.
        for part in {part.path: part for part in (*reader.parts, *reader.file_parts)}.values():
            part.decode_all()
    except CorruptLogError:
        return False
    return protocol is not None and metadata is not None
