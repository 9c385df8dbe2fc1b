"""ALTER TABLE ... DROP FEATURE ... [TRUNCATE HISTORY].

A drop has four steps. Each step starts from the state of the table. After an interruption every reader can
still read the table, and a second call continues.

1. `preparation` removes the uses of the feature from the newest version. A use that only the user may remove,
   such as a constraint, is reported as an error before any change.
2. For a reader feature, `history` checks every readable version. When older versions use the feature, either
   a checkpoint is written after them and protected with `checkpointProtection`, or `truncation` deletes that
   part of the log once it is old enough.
3. One commit removes the feature from the protocol, together with the feature's own properties and domains.
   The protocol becomes the lowest one that lists the remaining features. The commit must directly follow the
   version that was checked.
4. A checkpoint of that version lets readers start there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Final

from delta_core.actions import Action
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    FeatureRemovalError,
    MaxCommitAttemptsError,
)
from delta_core.maintenance.feature_drop.drop import Drop, checkpointed
from delta_core.maintenance.feature_drop.history import CleanSince, History, oldest_version
from delta_core.maintenance.feature_drop.path_check import require_allowed_paths
from delta_core.maintenance.feature_drop.preparation import PREPARATIONS
from delta_core.maintenance.feature_drop.state import table_state
from delta_core.maintenance.feature_drop.truncation import truncate_history as delete_log_before
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.removal import RemovalPlan, plan_removal
from delta_core.table_features.removal_rules import HistoryRule
from delta_core.transaction.commit_result import Committed

_log = logging.getLogger(__name__)

_MOST_CONFLICTS: Final = 20
_PROTECTION: Final = "checkpointProtection"


def drop_feature(
    snapshot: Snapshot, name: str, *, truncate_history: bool = False, run: Run = DEFAULT_RUN
) -> Committed:
    """Drop a table feature, so that clients that do not support the feature can use the table.

    Deletion vectors are purged, row ids are removed from the files, and a classic checkpoint follows V2
    checkpoints. Change data feed, in-commit timestamps, clustering, Iceberg compatibility and materialized
    partition columns are disabled. No row changes, and the change data feed shows no change. Requests: those
    of these steps, two checkpoints, one commit, and for a reader feature every commit of the log.

    Args:
        snapshot: any version of the table.
        name: the feature's name, in any case.
        truncate_history: for a reader feature that older versions use, delete these versions once
            `delta.dropFeatureTruncateHistory.retentionDuration` (24 hours) has passed. Otherwise they are
            kept behind a protected checkpoint, and the table gets the feature `checkpointProtection`. To
            drop `checkpointProtection` itself, delete the protected versions.
        run: the surroundings. Only the commit that drops the feature carries the idempotency key.

    Raises:
        FeatureRemovalError: the table does not support the feature, this library has no rule for dropping it,
            another feature requires it, or only the user may remove its uses. With `truncate_history`, also
            when it is too early: the uses are removed then, and the error has the time for the next call.
        ConfigurationError: the feature leaves no history to truncate.
        UnsupportedTableFeatureError: the table requires a feature that this writer does not support.
        ConcurrentModificationError, MaxCommitAttemptsError: other writers won too often.
        PathEscapeError: a file that must be opened is neither in the table nor below an allowed root;
            nothing was committed.
    """
    latest = snapshot.refresh()
    done = run.already_applied(latest)
    if done is not None:
        return done
    latest.require_writable(writer_kind=WriterKind.REWRITE, operation=f"drop the table feature {name}")
    plan = _planned(latest, name)
    drop = Drop(feature=plan.feature, last=run)
    shared = _SharedState(history=History(feature=plan.feature))
    has_history = plan.history is HistoryRule.WITHOUT_TRACES or plan.feature == _PROTECTION
    if truncate_history and not has_history:
        raise ConfigurationError(
            f"The table feature {plan.feature} has no history to truncate.",
            cause="Older versions may use the feature without affecting readers of the newest version.",
            fix="Call drop_feature without truncate_history.",
        )
    if plan.feature == _PROTECTION and not truncate_history:
        plan = _with_history(drop, latest, shared)  # The protected versions may be deleted already.
    _refuse_early(plan, truncate_history=truncate_history)
    require_allowed_paths(drop, latest)
    conflicts = 0
    while True:
        try:
            return _attempt(drop, latest, shared, truncate_history=truncate_history)
        except (ConcurrentModificationError, MaxCommitAttemptsError):
            conflicts += 1
            if conflicts > _MOST_CONFLICTS:
                raise
        except FeatureRemovalError:
            # Another run of the same job may have dropped the feature meanwhile.
            done = run.already_applied(latest.refresh())
            if done is None:
                raise
            return done
        latest = latest.refresh()


@dataclass(slots=True, kw_only=True)
class _SharedState:
    """The state that attempts share, which makes later attempts faster and so less likely to conflict.

    Attributes:
        history: the versions that were checked.
        barrier: the version of the checkpoint that was written; None before it was written.
    """

    history: History
    barrier: int | None = None


def _planned(latest: Snapshot, name: str) -> RemovalPlan:
    return plan_removal(table_state(latest), name, turn_off=True)


def _refuse_early(plan: RemovalPlan, *, truncate_history: bool) -> None:
    """Refuse, before the first commit, a drop whose obstacles no step removes."""
    is_removable = plan.feature in PREPARATIONS or (plan.feature == _PROTECTION and truncate_history)
    replace(plan, traces=() if is_removable else plan.traces, history_is_clean=True).require_ready()


def _attempt(drop: Drop, latest: Snapshot, shared: _SharedState, *, truncate_history: bool) -> Committed:
    """Run all steps once, from the present state of the table."""
    if drop.feature in PREPARATIONS:
        latest = PREPARATIONS[drop.feature](drop, latest)
    if drop.feature == _PROTECTION and truncate_history:
        latest = _without_protected_log(drop, latest)
    plan = _with_history(drop, latest, shared)
    since = plan.truncate_before_version
    if truncate_history and since is not None:
        latest = delete_log_before(drop, latest, before=since)
        plan = _with_history(drop, latest, shared)
    elif not plan.history_is_clean:
        if since is None or shared.barrier is None or shared.barrier < since:
            # Readers of later versions start at this checkpoint and do not read older commits.
            latest = checkpointed(latest)
            shared.barrier = latest.version
            plan = _with_history(drop, latest, shared)
        plan = plan.with_protection(version=latest.version + 1)
    plan.require_ready()
    actions: list[Action] = [plan.protocol]
    if plan.metadata != latest.metadata:
        actions.append(plan.metadata)
    committed = drop.commit(
        latest,
        *actions,
        *plan.domains,
        operation="DROP FEATURE",
        parameters={"featureName": drop.feature, "truncateHistory": truncate_history},
        only_next=True,
        last=True,
    )
    if committed.snapshot is not None and plan.history is HistoryRule.WITHOUT_TRACES:
        _checkpoint_if_possible(committed.snapshot)
    return committed


def _with_history(drop: Drop, latest: Snapshot, shared: _SharedState) -> RemovalPlan:
    plan = _planned(latest, drop.feature)
    if plan.history is HistoryRule.WITHOUT_TRACES:
        history = shared.history.clean_since(latest)
    elif drop.feature == _PROTECTION:
        history = CleanSince(oldest_version=oldest_version(latest), version=latest.version, time_ms=None)
    else:
        return plan
    return plan_removal(table_state(latest, history=history), drop.feature, turn_off=True)


def _without_protected_log(drop: Drop, latest: Snapshot) -> Snapshot:
    value = latest.metadata.configuration.get(CHECKPOINT_PROTECTION, "0").strip()
    before = int(value) if value.isascii() and value.isdecimal() else latest.version
    if oldest_version(latest) >= before:
        return latest
    return delete_log_before(drop, latest, before=min(before, latest.version))


def _checkpoint_if_possible(snapshot: Snapshot) -> None:
    """Write a checkpoint; a failure is only logged, since the version before has a checkpoint."""
    try:
        write_checkpoint(snapshot)
    except Exception as error:  # No error undoes the commit.
        fields = {"table": snapshot.store.uri, "version": snapshot.version, "error": str(error)}
        _log.warning("the checkpoint after dropping a feature failed", extra=fields)
