"""Running a job under a lease, so that no two jobs that ask for the same one work on a table together.

A job that lost its lease commits nothing more. Three things see to it:

- Right before each attempt to write a commit, the newest file of the lease is looked up: it must be this
  job's, and its time not run out.
- Whoever takes a lease over from a holder that did not release it first commits a *fence*: a version with
  nothing but the `txn` of the lease, and loads the table after it. A holder that was suspended between
  its look and its write finds its version taken, has to look again before the next one, and is refused. What
  it wrote before the fence, the new holder has seen. No clock has a part in this.
- A job whose end is not certain does not release its lease, which runs out and is fenced like any other.

What is not covered: handlers that commit without `JobContext.observer`, and deletions that were under way
when the lease was lost; those ask `JobContext.check_lease` before each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from delta_core.actions.set_transaction import SetTransaction
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import CommitStateUnknownError, DeltaError, LeaseLostError, StorageError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.lease import Lease, LeaseKeeper, acquire_lease, this_process
from delta_core.storage.lease_files import LeaseState
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import AlreadyApplied, Committed, Conflict, raise_for_result
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.observer import NULL_OBSERVER, CommitPhase, TransactionObserver
from delta_core.transaction.transaction import Transaction

FENCE_OPERATION = "LEASE TAKEOVER"
"""The operation's name in the table's history."""

_FENCE_TRIES = 10


def fence_app_id(name: str) -> str:
    """The application id under which a table records the fencing number of a lease."""
    return f"deltaward-lease/{name}"


def run_under_lease(spec: JobSpec, context: JobContext, work: Callable[[JobContext], JobResult]) -> JobResult:
    """Do a job's work as the holder of `spec.lease`.

    The lease is renewed by a thread of its own meanwhile, and released afterwards.

    Args:
        spec: names the lease.
        context: with the store, and the snapshot if there is a table.
        work: the work; it gets a context whose observer and `check_lease` look at the lease, and must load
            the table anew, since another holder may have changed it until now.

    Raises:
        LeaseHeldError: another job has it.
        LeaseLostError: it was lost before a commit, which was not made.
        DeltaError: what the work raises.
    """
    assert spec.lease is not None
    app_id = fence_app_id(spec.lease)
    fenced = context.snapshot.transactions.get(app_id) if context.snapshot else None
    lease = acquire_lease(
        context.require_store(),
        spec.lease,
        holder=f"{this_process()} job {context.job_id}",
        ttl_seconds=context.lease_ttl_seconds,
        fence_above=max(0, fenced.version) if fenced else 0,
        clock=context.clock,
    )
    observer = LeaseObserver(lease=lease, then=context.observer)
    held = replace(context, lease=lease, observer=observer)
    is_over = False
    try:
        with LeaseKeeper(lease):
            # One that could not be fenced is not released either: the next holder has to do it.
            warnings = _take_over(lease, held, fenced)
            try:
                result = work(held)
                is_over = result.status is not JobStatus.UNKNOWN
            except DeltaError as error:
                is_over = not isinstance(error, CommitStateUnknownError)
                raise
    finally:
        if is_over:
            lease.release()
    return replace(result, warnings=(*warnings, *result.warnings))


def fence_transaction(
    snapshot: Snapshot,
    name: str,
    fence: int,
    *,
    former_holder: str,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> Transaction:
    """The commit that takes the next version away from a former holder; it changes nothing in the table.

    Args:
        snapshot: the table; a commit beside others is made again on a newer one.
        name: the lease's name.
        fence: the new holder's fencing number.
        former_holder: who, for the history.
        observer: sees the phases of the commit.
        clock: where time comes from.
    """
    return Transaction.begin(
        snapshot,
        operation=FENCE_OPERATION,
        writer_kind=WriterKind.COMMIT,
        operation_parameters={"lease": name, "fence": fence, "formerHolder": former_holder},
        properties=CommitProperties(txn=SetTransaction(app_id=fence_app_id(name), version=fence)),
        isolation=IsolationLevel.SNAPSHOT_ISOLATION,
        observer=observer,
        clock=clock,
    )


@dataclass(slots=True, kw_only=True)
class LeaseObserver:
    """Lets a commit be written only while a lease is held; passes every phase on before it looks.

    Cost: two requests for each attempt to write.
    """

    lease: Lease
    then: TransactionObserver
    _unclear: int | None = None

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        """See `TransactionObserver`.

        Raises:
            LeaseLostError: the lease is lost, and no commit was written.
            CommitStateUnknownError: it is lost, and an earlier attempt at this version may have landed.
            StorageError: the store does not tell who holds it, and no commit was written.
        """
        self.then.on_phase(phase, version)
        if phase is CommitPhase.BEFORE_PUT:
            self._check(version)
        elif phase is CommitPhase.AFTER_PUT:
            self._unclear = version
        elif phase in (CommitPhase.LOST, CommitPhase.PREPARED):
            self._unclear = None

    def _check(self, version: int) -> None:
        try:
            self.lease.check()
        except DeltaError as error:
            if self._unclear != version:
                raise
            raise CommitStateUnknownError(
                f"It is not known whether version {version} was committed.",
                cause=f"The store gave no clear answer, and then: {error}",
                fix="Look into the table's history before running the job again; its data files were kept.",
            ) from error


def _take_over(lease: Lease, context: JobContext, fenced: SetTransaction | None) -> tuple[str, ...]:
    """Make sure that a holder that did not release the lease commits nothing from now on."""
    former = lease.follows
    if former is None and fenced is None:
        return ()
    if former is not None and former.record.state is LeaseState.RELEASED:
        return ()
    who = "a holder whose files are gone" if former is None else former.record.holder
    if context.snapshot is None:
        # Without a table the first commit is version 0, which only one can make.
        return (f"the lease {lease.name!r} was taken over from {who}",)
    version = _commit_fence(lease, context, context.snapshot, who)
    return (f"the lease {lease.name!r} was taken over from {who}; version {version} is the fence",)


def _commit_fence(lease: Lease, context: JobContext, snapshot: Snapshot, who: str) -> int:
    for _ in range(_FENCE_TRIES):
        snapshot = snapshot.refresh()
        transaction = fence_transaction(
            snapshot,
            lease.name,
            lease.fence,
            former_holder=who,
            observer=context.observer,
            clock=context.clock,
        )
        try:
            result = transaction.commit()
            if isinstance(result, Conflict) and result.error.retryable:
                continue
            done: Committed = raise_for_result(result)
        except CommitStateUnknownError as error:
            # Nothing of the job itself was begun, so its outcome is known.
            raise StorageError(
                f"The takeover of the lease {lease.name!r} could not be recorded.",
                cause=str(error),
                fix="Run the job again when the lease has run out.",
            ) from error
        if isinstance(done, AlreadyApplied):
            raise LeaseLostError(
                f"The lease {lease.name!r} is no longer held by {lease.holder}.",
                cause=f"The table has the fence of a later holder than number {lease.fence}.",
                fix="Run the job again.",
            )
        return done.version
    raise StorageError(
        f"The takeover of the lease {lease.name!r} could not be recorded.",
        cause=f"Other writers won {_FENCE_TRIES} times.",
        fix="Run the job again.",
    )
