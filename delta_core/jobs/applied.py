"""Detection of work that the table already contains, and of the commit that did the work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from delta_core.actions.set_transaction import SetTransaction
from delta_core.errors import DeltaError
from delta_core.jobs.context import delivery_action, idempotency_action
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.applied_commit import AppliedCommit
from delta_core.transaction.commit_result import already_applied
from delta_core.transaction.find_applied_commit import find_applied_commit

if TYPE_CHECKING:
    from delta_core.jobs.context import JobContext
    from delta_core.jobs.job_result import JobResult
    from delta_core.jobs.job_spec import JobSpec


def applied_action(spec: JobSpec, snapshot: Snapshot | None, context: JobContext) -> SetTransaction | None:
    """The table's `txn` action that makes the job a no-op; None when there is work to do.

    The action is that of the job's idempotency key, or of a later delivery of its work.
    """
    if snapshot is None:
        return None
    applied = already_applied(
        snapshot,
        idempotency_action(spec, clock=context.clock),
        delivery=delivery_action(spec, clock=context.clock),
    )
    return None if applied is None else applied.transaction


def add_applied_by(result: JobResult, spec: JobSpec, context: JobContext) -> JobResult:
    """Add the commit that did the work to the result of a job whose work was already applied.

    The result stays unchanged when that commit is no longer in the log, or when the store fails.
    """
    if not result.already_applied or result.applied_by is not None:
        return result
    return replace(result, applied_by=_find_applied_by(spec, context))


def _find_applied_by(spec: JobSpec, context: JobContext) -> AppliedCommit | None:
    store = context.require_store()
    try:
        # Another writer may have done the work after this job read its snapshot.
        latest = Snapshot.load(store, clock=context.clock)
        action = applied_action(spec, latest, context)
        return None if action is None else find_applied_commit(store, action)
    except DeltaError:
        return None
