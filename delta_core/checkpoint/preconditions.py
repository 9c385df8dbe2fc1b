"""Whether a checkpoint may be written of a snapshot: its log is still the table's, and undamaged."""

from __future__ import annotations

from delta_core.errors import StaleCommitError, VerificationError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.log_tail_guard import log_replaced


def other_log(snapshot: Snapshot) -> StaleCommitError | None:
    """The reason why the log is another table's now, or None. One request."""
    version_file = snapshot.segment.version_file
    if version_file is None:
        return None
    return log_replaced(snapshot.store, version_file, clock=snapshot.clock)


def require_as_its_checksum_says(snapshot: Snapshot) -> None:
    """Refuse a version that is not what its checksum says.

    Log cleanup would make the checkpoint the only account of it.

    Raises:
        VerificationError: naming the differences.
    """
    if snapshot.checksum_discrepancies:
        raise VerificationError(
            f"No checkpoint is written of version {snapshot.version}: it is not what its checksum says.",
            cause="; ".join(snapshot.checksum_discrepancies),
            fix="Restore the log from a backup, or delete the checksum if the log is right.",
        )
