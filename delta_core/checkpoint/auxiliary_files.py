"""What may follow a commit besides a checkpoint: its version's checksum, and a log compaction.

Both are for readers' convenience. So nothing that goes wrong here is more than a line in the program's log.
"""

from __future__ import annotations

import logging
from enum import StrEnum

from delta_core.checkpoint.log_compaction import compact_log
from delta_core.checkpoint.version_checksum import write_version_checksum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.table_properties import TableProperty, parse_whole

_log = logging.getLogger(__name__)


class ChecksumPolicy(StrEnum):
    """When a version's checksum is written."""

    NEVER = "never"
    CHECKPOINT = "checkpoint"
    """With each checkpoint, where the writer knows the table's files; more would cost each commit a write."""
    KNOWN = "known"
    """Where the writer knows the table's files already: reading them could cost more than the commit."""
    ALWAYS = "always"


def _policy(text: str) -> ChecksumPolicy:
    try:
        return ChecksumPolicy(text.strip().lower())
    except ValueError:
        raise ValueError(f"it is none of {', '.join(ChecksumPolicy)}") from None


def _at_least_two(value: int | None) -> str | None:
    return None if value is None or value >= 2 else "it is below 2"


VERSION_CHECKSUM = TableProperty(
    key="deltaward.versionChecksum",
    default=ChecksumPolicy.CHECKPOINT,
    parse=_policy,
    accepted="never, checkpoint (with each), known (where the writer knows the table's files) or always",
    help="When a version's checksum file is written.",
)
LOG_COMPACTION_INTERVAL: TableProperty[int | None] = TableProperty(
    key="deltaward.logCompactionInterval",
    default=None,
    parse=parse_whole,
    validate=_at_least_two,
    accepted="a whole number from 2 on",
    help="Number of commits that a log compaction file stands for; unset writes none.",
)


def write_auxiliary_files(snapshot: Snapshot, *, committed_version: int, txn_id: str) -> None:
    """Write the checksum of a version that was just committed, and a log compaction if one is due.

    Never raises for what goes wrong. Requests: see `write_version_checksum` and `compact_log`.

    Args:
        snapshot: the table at that version, or later; then there is no checksum, since all in one is of its
            version.
        committed_version: the version.
        txn_id: its commit's.
    """
    try:
        if _wants_checksum(snapshot, committed_version):
            write_version_checksum(snapshot, txn_id=txn_id)
    except Exception as error:  # the commit stands, and a version needs no checksum
        _warn("version checksum after commit failed", snapshot, error)
    try:
        interval = LOG_COMPACTION_INTERVAL.of(snapshot.metadata.configuration)
        if interval is not None and _due(snapshot, committed_version, interval):
            compact_log(snapshot, first=committed_version + 1 - interval, last=committed_version)
    except Exception as error:  # the commits are all there
        _warn("log compaction after commit failed", snapshot, error)


def _wants_checksum(snapshot: Snapshot, committed_version: int) -> bool:
    policy = VERSION_CHECKSUM.of(snapshot.metadata.configuration)
    if policy is ChecksumPolicy.NEVER or snapshot.version != committed_version:
        return False
    if policy is ChecksumPolicy.ALWAYS:
        return True
    is_asked = policy is ChecksumPolicy.KNOWN or _has_checkpoint(snapshot, committed_version)
    return is_asked and snapshot.knows_files


def _due(snapshot: Snapshot, committed_version: int, interval: int) -> bool:
    # A checkpoint of the same version makes it superfluous.
    return (committed_version + 1) % interval == 0 and not _has_checkpoint(snapshot, committed_version)


def _has_checkpoint(snapshot: Snapshot, committed_version: int) -> bool:
    return committed_version > 0 and committed_version % snapshot.properties.checkpoint_interval == 0


def _warn(message: str, snapshot: Snapshot, error: Exception) -> None:
    fields = {"table": snapshot.store.uri, "version": snapshot.version, "error": str(error)}
    _log.warning(message, extra=fields)
