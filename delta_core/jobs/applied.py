"""Work that the table has already, and which commit did it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from delta_core.actions.set_transaction import SetTransaction
from delta_core.errors import DeltaError
from delta_core.jobs.context import delivery_action, idempotency_action
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.applied_by import AppliedBy
from delta_core.transaction.find_applied import find_applied
from delta_core.transaction.idempotency import already_applied, superseded

if TYPE_CHECKING:
    from delta_core.jobs.context import JobContext
    from delta_core.jobs.job_result import JobResult
    from delta_core.jobs.job_spec import JobSpec


def applied_action(spec: JobSpec, snapshot: Snapshot | None, context: JobContext) -> SetTransaction | None:
    """The table's `txn` action because of which the job has nothing to do; None when it has.

    That is the one of the job's key, or of a later delivery of its work.
    """
    if snapshot is None:
        return None
    return already_applied(snapshot, idempotency_action(spec, clock=context.clock)) or superseded(
        snapshot, delivery_action(spec, clock=context.clock)
    )


def name_who_applied(result: JobResult, spec: JobSpec, context: JobContext) -> JobResult:
    """The result of a job that found its work done, with the commit that did it.

    Nothing is added when that commit is no longer in the log, or the store does not tell: it is a courtesy.
    """
    if not result.already_applied or result.applied_by is not None:
        return result
    return replace(result, applied_by=_found(spec, context))


def _found(spec: JobSpec, context: JobContext) -> AppliedBy | None:
    store = context.require_store()
    try:
        # The work may have been done while the job was at it, after the snapshot that it began with.
        latest = Snapshot.load(store, clock=context.clock)
        action = applied_action(spec, latest, context)
        return None if action is None else find_applied(store, action)
    except DeltaError:
        return None
