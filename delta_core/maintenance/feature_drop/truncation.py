"""Taking the part of the log away in which a feature is in use, once it is old enough for that.

Versions from before are then no longer readable. How long they stay at least is the table's to say
(`delta.dropFeatureTruncateHistory.retentionDuration`): no less than any reader or writer needs who began with
one of them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import FeatureRemovalError
from delta_core.log.listing import list_log
from delta_core.maintenance.feature_drop.history import version_time_ms
from delta_core.maintenance.feature_drop.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.removal import TRUNCATION_RETENTION


def truncate_history(run: Run, latest: Snapshot, *, before: int) -> Snapshot:
    """Delete the log before a version, up to a checkpoint, if all of that is old enough.

    A checkpoint without traces of the feature is written first, for a table on which nobody works would never
    have one. A commit that changes nothing follows where there is something to delete: how old versions are
    goes by the store's newest file, too.

    Args:
        run: the drop.
        latest: the newest version, which has no traces of the feature.
        before: the first version without.

    Returns:
        The newest version.

    Raises:
        FeatureRemovalError: it is too early, and says when it is not; or a pin holds the log.
        CommitError, StorageError: by kind.
    """
    write_checkpoint(latest)
    retention_ms = TRUNCATION_RETENTION.of(latest.metadata.configuration)
    listed = (item.version for item in list_log(latest.store).checkpoints if item.version >= before)
    first = next(listed, latest.version)
    since_ms = version_time_ms(latest, first)
    due_ms = None if since_ms is None else since_ms + retention_ms
    if due_ms is None or run.clock.now_ms() < due_ms:
        raise _too_early(run, due_ms, retention_ms)
    latest = run.nothing(latest)
    write_checkpoint(latest)
    done = cleanup_expired_logs(latest, clock=run.clock, retention_ms=retention_ms)
    if done.checkpoint_version is None or done.checkpoint_version < before:
        held = "; ".join(pin.label for pin in done.pins)
        raise FeatureRemovalError(
            f"The table feature {run.feature} cannot be dropped now.",
            cause=f"The log before version {before} could not be cleaned up: "
            + (
                f"it is held by {held}."
                if held
                else "the store's own time has not come as far, or a checkpoint cannot be read."
            ),
            fix="Run it again later.",
        )
    return Snapshot.load(latest.store, clock=latest.clock)


def _too_early(run: Run, due_ms: int | None, retention_ms: int) -> FeatureRemovalError:
    hours = retention_ms / 3_600_000
    when = "later" if due_ms is None else f"from {_shown(due_ms)} on"
    return FeatureRemovalError(
        f"The table feature {run.feature} is no longer in use, and cannot be dropped yet.",
        cause=f"Versions that use it are in the log, and stay for {hours:g} hours "
        f"({TRUNCATION_RETENTION.key}).",
        fix=f"Run it again {when}; or drop it at once without truncating the history.",
    )


def _shown(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
