"""Optional files after a commit, besides a checkpoint: the version checksum and a log compaction file.

Both only help readers. So a failure here is logged as a warning and never raised.
"""

from __future__ import annotations

import logging
from enum import StrEnum

from delta_core.checkpoint.log_compaction import compact_log
from delta_core.checkpoint.version_checksum import write_version_checksum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.table_properties import TableProperty, parse_integer

_log = logging.getLogger(__name__)


class ChecksumPolicy(StrEnum):
    """The commits for which a version checksum is written."""

    NEVER = "never"
    CHECKPOINT = "checkpoint"
    """With each checkpoint, if the writer has read the table's files. Other commits then save a request."""
    KNOWN = "known"
    """If the writer has read the table's files already; reading them could cost more than the commit."""
    ALWAYS = "always"


def _policy(value: str) -> ChecksumPolicy:
    try:
        return ChecksumPolicy(value.strip().lower())
    except ValueError:
        raise ValueError(f"It must be one of {', '.join(ChecksumPolicy)}.") from None


def _at_least_two(value: int | None) -> str | None:
    return None if value is None or value >= 2 else "It is below 2."


VERSION_CHECKSUM = TableProperty(
    key="deltaward.versionChecksum",
    default=ChecksumPolicy.CHECKPOINT,
    parse=_policy,
    accepted="never, checkpoint (with each), known (if the writer has read the table's files) or always",
    help="When a version's checksum file is written.",
)
LOG_COMPACTION_INTERVAL: TableProperty[int | None] = TableProperty(
    key="deltaward.logCompactionInterval",
    default=None,
    parse=parse_integer,
    validate=_at_least_two,
    accepted="a whole number from 2 on",
    help="Number of commits that one log compaction file combines. Unset writes no such files.",
)


def write_auxiliary_files(
    snapshot: Snapshot, *, committed_version: int, txn_id: str, with_checkpoint: bool
) -> None:
    """Write the checksum of a version that was just committed, and a log compaction file if one is due.

    A failure is logged and not raised. Requests: see `write_version_checksum` and `compact_log`.

    Args:
        snapshot: the table at the committed version or later. For a later version no checksum is written,
            since a checksum describes exactly its own version.
        committed_version: the version that was just committed.
        txn_id: `commitInfo.txnId` of the commit.
        with_checkpoint: whether the version is one that gets a checkpoint.
    """
    try:
        if _wants_checksum(snapshot, committed_version, with_checkpoint):
            write_version_checksum(snapshot, txn_id=txn_id)
    except Exception as error:  # the commit is complete, and its checksum is optional
        _warn("version checksum after commit failed", snapshot, error)
    try:
        interval = LOG_COMPACTION_INTERVAL.of(snapshot.metadata.configuration)
        # A checkpoint of the same version makes the log compaction file unnecessary.
        if interval is not None and (committed_version + 1) % interval == 0 and not with_checkpoint:
            compact_log(snapshot, first=committed_version + 1 - interval, last=committed_version)
    except Exception as error:  # the commits exist, and a log compaction file is optional
        _warn("log compaction after commit failed", snapshot, error)


def _wants_checksum(snapshot: Snapshot, committed_version: int, with_checkpoint: bool) -> bool:
    policy = VERSION_CHECKSUM.of(snapshot.metadata.configuration)
    if policy is ChecksumPolicy.NEVER or snapshot.version != committed_version:
        return False
    if policy is ChecksumPolicy.ALWAYS:
        return True
    is_requested = policy is ChecksumPolicy.KNOWN or with_checkpoint
    return is_requested and snapshot.has_loaded_files


def _warn(message: str, snapshot: Snapshot, error: Exception) -> None:
    fields = {"table": snapshot.store.uri, "version": snapshot.version, "error": str(error)}
    _log.warning(message, extra=fields)
