"""ALTER TABLE ... DROP FEATURE ... [TRUNCATE HISTORY].

Four steps, each of which finds what an earlier run has done: whoever is stopped in between leaves a table
that everybody reads as before, and calls again.

1. What the newest version needs the feature for goes (`preparation`). What is the user's to take away, such
   as a constraint, is named instead, before anything is done.
2. For a feature of readers every version that the log can show is looked at (`history`). Where some need it,
   either a checkpoint is written behind them, and `checkpointProtection` keeps it; or, to truncate the
   history, that part of the log is deleted once it is old enough (`truncation`).
3. One commit takes the name out of the protocol, which becomes the lowest one that says what is left, with
   the feature's own properties and domains. It only ever follows the version that was looked at.
4. A checkpoint of that version lets readers begin there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from delta_core.actions import Action
from delta_core.checkpoint.write import write_checkpoint
from delta_core.clock import Clock
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    FeatureRemovalError,
    MaxCommitAttemptsError,
)
from delta_core.execution.executor import Executor
from delta_core.maintenance.feature_drop.history import CleanSince, History, oldest_version
from delta_core.maintenance.feature_drop.preparation import PREPARATIONS
from delta_core.maintenance.feature_drop.reach import require_reach
from delta_core.maintenance.feature_drop.run import Run, checkpointed
from delta_core.maintenance.feature_drop.state import table_state
from delta_core.maintenance.feature_drop.truncation import truncate_history as truncated
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.removal import RemovalPlan, plan_removal
from delta_core.table_features.removal_rules import HistoryRule
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    require_commit_properties,
)
from delta_core.transaction.commit_result import AlreadyApplied, Committed
from delta_core.transaction.idempotency import already_applied
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver

_log = logging.getLogger(__name__)

_MOST_CONFLICTS: Final = 20
_PROTECTION: Final = "checkpointProtection"


def drop_feature(
    snapshot: Snapshot,
    name: str,
    *,
    truncate_history: bool = False,
    allowed_roots: Sequence[LogStore] = (),
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    executor: Executor | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock | None = None,
) -> Committed:
    """Take a table feature out of the table, so that clients that do not know it can use the table.

    Deletion vectors are purged, row ids taken off the files, V2 checkpoints followed by a classic one; change
    data feeds, in-commit timestamps, clustering, Iceberg compatibility and materialised partition columns are
    turned off. No row changes, and readers of changes see nothing. Requests: those of these steps, for a
    feature of readers every commit of the log, two checkpoints, one commit.

    Args:
        snapshot: any version of the table.
        name: the feature's, in any case.
        truncate_history: for a feature of readers that older versions use: delete these versions once
            `delta.dropFeatureTruncateHistory.retentionDuration` (24 hours) has passed, instead of keeping
            them behind a protected checkpoint, for which the table gets the feature `checkpointProtection`.
            To drop `checkpointProtection` itself: delete the protected versions.
        allowed_roots: where absolute paths of the log may lead, for a shallow clone; see `Scan`. Nothing is
            written or deleted there.
        properties: provenance, idempotency key and limits; the key goes with the commit that drops.
        executor: maps the rewriting of files; threads of this process when None.
        observer: sees each phase of the commits.
        clock: where time comes from; the snapshot's when None.

    Raises:
        FeatureRemovalError: the table does not support the feature, there is no rule for it, another feature
            requires it, it is in use in a way that is the user's to take away; or, with `truncate_history`,
            it is too early: then what was in use is gone already, and the error says when to call again.
        ConfigurationError: the feature leaves no history to truncate.
        UnsupportedTableFeatureError: the table needs something that this writer does not do.
        ConcurrentModificationError, MaxCommitAttemptsError: other writers came in between time and again.
        PathEscapeError: a file that has to be opened is neither in the table nor below an allowed root;
            nothing was committed.
    """
    require_commit_properties(properties)
    latest = snapshot.refresh()
    done = _done(latest, properties)
    if done is not None:
        return done
    latest.require_writable(writer_kind=WriterKind.REWRITE, operation=f"drop the table feature {name}")
    plan = _planned(latest, name)
    clock = clock or latest.clock
    run = Run(
        feature=plan.feature,
        access=DataAccess(allowed_roots=tuple(allowed_roots), clock=clock),
        properties=properties,
        executor=executor,
        observer=observer,
        clock=clock,
    )
    seen = _Seen(history=History(feature=plan.feature))
    has_history = plan.history is HistoryRule.WITHOUT_TRACES or plan.feature == _PROTECTION
    if truncate_history and not has_history:
        raise ConfigurationError(
            f"There is no history to truncate for the table feature {plan.feature}.",
            cause="Older versions may use it, whoever reads the table.",
            fix="Leave truncate_history out.",
        )
    if plan.feature == _PROTECTION and not truncate_history:
        plan = _with_history(run, latest, seen)  # what it protects may be gone already
    _refuse_early(plan, truncate_history=truncate_history)
    require_reach(run, latest)
    conflicts = 0
    while True:
        try:
            return _attempt(run, latest, seen, truncate_history=truncate_history)
        except (ConcurrentModificationError, MaxCommitAttemptsError):
            conflicts += 1
            if conflicts > _MOST_CONFLICTS:
                raise
        except FeatureRemovalError:
            # Another run of the same job may have dropped it meanwhile.
            done = _done(latest.refresh(), properties)
            if done is None:
                raise
            return done
        latest = latest.refresh()


def _done(latest: Snapshot, properties: CommitProperties) -> AlreadyApplied | None:
    """What there is to say where the idempotency key is in the table."""
    known = already_applied(latest, properties.txn)
    if known is None:
        return None
    return AlreadyApplied(version=latest.version, attempts=0, snapshot=latest, transaction=known)


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What an attempt leaves to the next one, which others then have less time to be first again.

    Attributes:
        history: the versions that were looked at.
        barrier: the version of a checkpoint that was written; None before.
    """

    history: History
    barrier: int | None = None


def _planned(latest: Snapshot, name: str) -> RemovalPlan:
    return plan_removal(table_state(latest), name, turn_off=True)


def _refuse_early(plan: RemovalPlan, *, truncate_history: bool) -> None:
    """Before anything is committed: what no step of a drop takes away."""
    goes = plan.feature in PREPARATIONS or (plan.feature == _PROTECTION and truncate_history)
    replace(plan, traces=() if goes else plan.traces, history_is_clean=True).require_ready()


def _attempt(run: Run, latest: Snapshot, seen: _Seen, *, truncate_history: bool) -> Committed:
    """All steps once, from what the table is."""
    if run.feature in PREPARATIONS:
        latest = PREPARATIONS[run.feature](run, latest)
    if run.feature == _PROTECTION and truncate_history:
        latest = _without_protected_log(run, latest)
    plan = _with_history(run, latest, seen)
    since = plan.truncate_before_version
    if truncate_history and since is not None:
        latest = truncated(run, latest, before=since)
        plan = _with_history(run, latest, seen)
    elif not plan.history_is_clean:
        if since is None or seen.barrier is None or seen.barrier < since:
            # Readers of later versions begin here, and never meet what lies before.
            latest = checkpointed(latest)
            seen.barrier = latest.version
            plan = _with_history(run, latest, seen)
        plan = plan.with_protection(version=latest.version + 1)
    plan.require_ready()
    actions: list[Action] = [plan.protocol]
    if plan.metadata != latest.metadata:
        actions.append(plan.metadata)
    committed = run.commit(
        latest,
        *actions,
        *plan.domains,
        operation="DROP FEATURE",
        parameters={"featureName": run.feature, "truncateHistory": truncate_history},
        only_next=True,
        last=True,
    )
    if committed.snapshot is not None and plan.history is HistoryRule.WITHOUT_TRACES:
        _checkpoint_if_possible(committed.snapshot)
    return committed


def _with_history(run: Run, latest: Snapshot, seen: _Seen) -> RemovalPlan:
    plan = _planned(latest, run.feature)
    if plan.history is HistoryRule.WITHOUT_TRACES:
        history = seen.history.clean_since(latest)
    elif run.feature == _PROTECTION:
        history = CleanSince(oldest_version=oldest_version(latest), version=latest.version, time_ms=None)
    else:
        return plan
    return plan_removal(table_state(latest, history=history), run.feature, turn_off=True)


def _without_protected_log(run: Run, latest: Snapshot) -> Snapshot:
    text = latest.metadata.configuration.get(CHECKPOINT_PROTECTION, "0").strip()
    before = int(text) if text.isascii() and text.isdecimal() else latest.version
    if oldest_version(latest) >= before:
        return latest
    return truncated(run, latest, before=min(before, latest.version))


def _checkpoint_if_possible(snapshot: Snapshot) -> None:
    """The feature is dropped whether or not its version has a checkpoint: the one before it has."""
    try:
        write_checkpoint(snapshot)
    except Exception as error:  # whatever it is, the commit stands
        fields = {"table": snapshot.store.uri, "version": snapshot.version, "error": str(error)}
        _log.warning("checkpoint after a dropped feature failed", extra=fields)
