"""Preconditions of a checkpoint: the snapshot's log has not been replaced and agrees with its checksum."""

from __future__ import annotations

from delta_core.errors import StaleCommitError, VerificationError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.log_tail_guard import log_replaced


def replaced_log_error(snapshot: Snapshot) -> StaleCommitError | None:
    """The error to raise if another table's log has replaced the snapshot's log, else None. One request."""
    version_file = snapshot.segment.version_file
    if version_file is None:
        return None
    return log_replaced(snapshot.store, version_file, clock=snapshot.clock)


def require_checksum_agreement(snapshot: Snapshot) -> None:
    """Refuse a version that contradicts its checksum.

    After a log cleanup, the version's checkpoint would be the only record of the version.

    Raises:
        VerificationError: the version contradicts its checksum; the cause lists the differences.
    """
    if snapshot.checksum_discrepancies:
        raise VerificationError(
            f"Cannot write a checkpoint of version {snapshot.version}: the version contradicts its checksum.",
            cause=f"The differences are: {'; '.join(snapshot.checksum_discrepancies)}.",
            fix="Restore the log from a backup, or delete the checksum if the log is right.",
        )
