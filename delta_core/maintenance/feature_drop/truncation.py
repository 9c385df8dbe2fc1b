"""Deletion of the part of the log in which a feature is in use, once that part is old enough.

The deleted versions are no longer readable. The table property
`delta.dropFeatureTruncateHistory.retentionDuration` is the shortest time that they stay. It must exceed the
time that a reader or writer needs which started with one of them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import FeatureRemovalError
from delta_core.log.listing import list_log
from delta_core.maintenance.feature_drop.drop import Drop
from delta_core.maintenance.feature_drop.history import version_time_ms
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.removal import TRUNCATION_RETENTION


def truncate_history(drop: Drop, latest: Snapshot, *, before: int) -> Snapshot:
    """Delete the log before a version, up to a checkpoint, if that whole part is old enough.

    A checkpoint that does not use the feature is written first, since a table without other writers would
    never get one. If there is something to delete, an empty commit follows, since the age of versions is also
    measured against the newest file's time in the store.

    Args:
        drop: the drop.
        latest: the newest version, which does not use the feature.
        before: the first version since which no version uses the feature.

    Returns:
        The newest version.

    Raises:
        FeatureRemovalError: it is too early, and the error has the time of the next try; or a pin protects
            the log.
        CommitError, StorageError: a commit or a request failed.
    """
    write_checkpoint(latest)
    retention_ms = TRUNCATION_RETENTION.of(latest.metadata.configuration)
    checkpoints = (item.version for item in list_log(latest.store).checkpoints if item.version >= before)
    first = next(checkpoints, latest.version)
    since_ms = version_time_ms(latest, first)
    due_ms = None if since_ms is None else since_ms + retention_ms
    if due_ms is None or drop.run.now_ms() < due_ms:
        raise _too_early(drop, due_ms, retention_ms)
    latest = drop.empty_commit(latest)
    write_checkpoint(latest)
    cleanup = cleanup_expired_logs(latest, clock=drop.run.clock, retention_ms=retention_ms)
    if cleanup.checkpoint_version is None or cleanup.checkpoint_version < before:
        pins = "; ".join(pin.label for pin in cleanup.pins)
        raise FeatureRemovalError(
            f"The table feature {drop.feature} cannot be dropped now.",
            cause=f"The log before version {before} could not be cleaned up: "
            + (
                f"it is protected by {pins}."
                if pins
                else "the store's clock is behind, or a checkpoint cannot be read."
            ),
            fix="Drop the feature again later.",
        )
    return Snapshot.load(latest.store, clock=latest.clock)


def _too_early(drop: Drop, due_ms: int | None, retention_ms: int) -> FeatureRemovalError:
    hours = retention_ms / 3_600_000
    when = "later" if due_ms is None else f"after {_iso(due_ms)}"
    return FeatureRemovalError(
        f"The table feature {drop.feature} cannot be dropped yet.",
        cause="The newest version no longer uses the feature, but older versions in the log do. They are "
        f"kept for {hours:g} hours ({TRUNCATION_RETENTION.key}).",
        fix=f"Drop the feature again {when}, or drop it now without truncate_history.",
    )


def _iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
