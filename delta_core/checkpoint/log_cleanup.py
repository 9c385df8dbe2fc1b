"""Log cleanup: deletes the log files of versions past the retention (PROTOCOL.md, "Metadata Cleanup")."""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.checkpoint.checkpoint_protection import may_delete_log_before
from delta_core.checkpoint.sidecar_cleanup import unreferenced_sidecars
from delta_core.clock import Clock
from delta_core.errors import CorruptLogError
from delta_core.leases.pins import PinnedVersion, pins_in_force
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.listing import CheckpointFiles, LogListing, list_log
from delta_core.log.log_path import LOG_DIRECTORY, LogFileKind, LogPath
from delta_core.replay.state import checkpoint_protocol_and_metadata
from delta_core.snapshot.commit_time import CommitTimes
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import without_cache
from delta_core.storage.log_store import ObjectInfo
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.table_properties import DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanup:
    """The result of a log cleanup. With a dry run it lists what would be deleted.

    Attributes:
        cutoff_ms: versions committed at this time or later stay readable, and so does the version before
            them.
        checkpoint_version: the oldest version that stays; None when nothing may be deleted.
        files: the deleted objects, in the order of deletion.
        pins: the pinned versions that keep expired log files from deletion.
    """

    cutoff_ms: int
    checkpoint_version: int | None
    files: tuple[ObjectInfo, ...]
    pins: tuple[PinnedVersion, ...] = ()

    @property
    def total_bytes(self) -> int:
        """The total size of the files."""
        return sum(info.size_bytes for info in self.files)


def cleanup_expired_logs(
    snapshot: Snapshot,
    *,
    clock: Clock | None = None,
    dry_run: bool = False,
    retention_ms: int | None = None,
) -> LogCleanup:
    """Delete the log before the newest checkpoint from which every version within the retention can be read.

    Every version that is not older than `delta.logRetentionDuration` stays readable. Therefore the
    checkpoint, its commit file and all commits after it stay. A version that a reader has pinned and all
    later versions stay readable, too. The age of a version is measured from the earlier of two times: this
    machine's clock and the time of the store's newest log file. The checkpoint is read completely before
    anything is deleted.

    Sidecars that no remaining checkpoint refers to are deleted as well, see `sidecar_cleanup`. A log that the
    table feature `checkpointProtection` protects may be kept, see `checkpoint_protection`. The caller decides
    whether to clean up at all (`delta.enableExpiredLogCleanup`).

    Requests: four listings, one request for each pin, reading the checkpoint and its sidecars, and one
    deletion per file. If there are old sidecars: one more listing, and opening every remaining checkpoint. If
    the table has in-commit timestamps: reading a few commits. In a protected log: reading the commits and
    checkpoints that would be deleted.

    Args:
        snapshot: the newest version of the table.
        clock: the source of the current time; None takes the snapshot's clock.
        dry_run: only list what would be deleted.
        retention_ms: a retention in milliseconds, in place of the table's. It counts from now, and the
            table's retention counts from midnight (UTC).

    Raises:
        LeaseFileError: a pin cannot be read; nothing is deleted.
        UnsupportedTableFeatureError: the table uses a feature that forbids the cleanup.
    """
    snapshot.require_writable(writer_kind=WriterKind.CLEANUP, operation="clean up the log")
    store = snapshot.store
    listing = list_log(store)
    # A clock that is ahead would make new versions look expired. The store's clock has reached at least
    # the time of its newest log file.
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
    oldest_version = next(
        (
            item.version
            for item in reversed(listing.checkpoints)
            if item.version <= cutoff_version and _is_sound(snapshot, item)
        ),
        None,
    )
    if oldest_version is None or not may_delete_log_before(snapshot, listing, oldest_version):
        return LogCleanup(cutoff_ms=cutoff_ms, checkpoint_version=None, files=(), pins=holding)
    files = []
    for info in store.list_directory(LOG_DIRECTORY):
        path = LogPath.parse(info.path)
        if path is None:
            continue
        is_compacted = path.kind is LogFileKind.COMPACTED
        if path.version < oldest_version or (is_compacted and path.version == oldest_version):
            files.append(info)
    if not dry_run:
        for info in files:
            store.delete(info.path)
    # Deleted after the checkpoints that refer to them: an interruption then leaves only unreferenced files.
    sidecars = unreferenced_sidecars(
        store, known=listing.checkpoints, from_version=oldest_version, now_ms=now_ms
    )
    if not dry_run:
        for info in sidecars:
            store.delete(info.path)
    files += sidecars
    return LogCleanup(
        cutoff_ms=cutoff_ms, checkpoint_version=oldest_version, files=tuple(files), pins=holding
    )


def _store_time_ms(listing: LogListing) -> int:
    """The time at which the store wrote the newest commit or checkpoint, usually moments ago."""
    newest = [file.info for file in listing.commits[-1:]]
    newest += [part for files in listing.checkpoints[-1:] for part in files.parts]
    return max((info.modified_ms for info in newest), default=0)


def _is_sound(snapshot: Snapshot, files: CheckpointFiles) -> bool:
    """True when every column of a checkpoint can be decoded: the log before it is about to be deleted."""
    try:
        # A copy in this machine's cache would not prove that the stored file is readable.
        reader = CheckpointReader.open(without_cache(snapshot.store), files)
        protocol, metadata = checkpoint_protocol_and_metadata(reader)
        # Readers need different columns, so damage in any column would affect a reader.
        for part in {part.path: part for part in (*reader.parts, *reader.file_parts)}.values():
            part.decode_all()
    except CorruptLogError:
        return False
    return protocol is not None and metadata is not None
