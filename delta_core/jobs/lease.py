"""Running a job under a lease: two jobs with the same lease never work on a table at the same time.

A job that lost its lease commits nothing more. Three mechanisms ensure this:

- Right before each attempt to write a commit, the job reads the newest file of the lease. The file must
  belong to the job, and the lease must not have expired.
- A new holder that takes the lease over from a holder that did not release it first commits a *fence*: a
  version that contains only the `txn` of the lease. Then the new holder loads the table. A former holder that
  was suspended between its check and its write finds that its version is taken. It must check the lease again
  before the next attempt, and is refused. The new holder sees all commits of the former holder before the
  fence. This does not depend on any clock.
- A job with an unknown outcome does not release its lease. The lease expires and is fenced like any other.

Not covered: handlers that commit without `JobContext.observer`, and deletions in progress when the lease is
lost. Handlers that delete call `JobContext.check_lease` before each step.
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
from delta_core.leases.lease import Lease, LeaseKeeper, acquire_lease, this_process
from delta_core.leases.lease_files import LeaseState
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import WriterKind
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
    """Run a job's work as the holder of `spec.lease`.

    A thread renews the lease during the work. The lease is released afterwards.

    Args:
        spec: names the lease.
        context: the context with the store, and with the snapshot if there is a table.
        work: the work. Its context has an observer and a `check_lease` that check the lease. The work must
            load the table again, because another holder may have changed the table before.

    Raises:
        LeaseHeldError: another job holds the lease.
        LeaseLostError: the lease was lost before a commit, and the commit was not written.
        DeltaError: the work raises it.
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
            # When the fence fails, the lease is not released, so that the next holder commits the fence.
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
    """The commit that takes the next version before a former holder can. It changes no data.

    Args:
        snapshot: the table. After a conflict, the caller retries with a newer snapshot.
        name: the lease's name.
        fence: the new holder's fencing number.
        former_holder: name of the former holder, for the table's history.
        observer: receives the phases of the commit.
        clock: the source of time.
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
    """An observer that allows a commit only while the job holds the lease.

    It forwards each phase to `then` before it checks the lease. Cost: two requests for each attempt to write.
    """

    lease: Lease
    then: TransactionObserver
    _unclear: int | None = None

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        """See `TransactionObserver`.

        Raises:
            LeaseLostError: the lease is lost, and no commit was written.
            CommitStateUnknownError: the lease is lost, and an earlier attempt at this version may have
                landed.
            StorageError: the store failed during the check, and no commit was written.
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
                f"It is unknown whether version {version} was committed.",
                cause="The store gave no clear answer to the write, and then the lease check failed: "
                f"{error}",
                fix="Read the table's history before you run the job again. The data files were kept.",
            ) from error


def _take_over(lease: Lease, context: JobContext, fenced: SetTransaction | None) -> tuple[str, ...]:
    """Ensure that a former holder that did not release the lease can commit nothing more."""
    former = lease.follows
    if former is None and fenced is None:
        return ()
    if former is not None and former.record.state is LeaseState.RELEASED:
        return ()
    former_holder = "a holder whose lease files are missing" if former is None else former.record.holder
    if context.snapshot is None:
        # Without a table the first commit is version 0, which only one writer can create.
        return (f"The lease {lease.name!r} was taken over from {former_holder}.",)
    version = _commit_fence(lease, context, context.snapshot, former_holder)
    return (f"The lease {lease.name!r} was taken over from {former_holder}; version {version} is the fence.",)


def _commit_fence(lease: Lease, context: JobContext, snapshot: Snapshot, former_holder: str) -> int:
    for _ in range(_FENCE_TRIES):
        snapshot = snapshot.refresh()
        transaction = fence_transaction(
            snapshot,
            lease.name,
            lease.fence,
            former_holder=former_holder,
            observer=context.observer,
            clock=context.clock,
        )
        try:
            result = transaction.commit()
            if isinstance(result, Conflict) and result.error.retryable:
                continue
            done: Committed = raise_for_result(result)
        except CommitStateUnknownError as error:
            # The job has not started to work, so its outcome is known.
            raise StorageError(
                f"The takeover of the lease {lease.name!r} could not be recorded.",
                cause=str(error),
                fix="Run the job again when the lease has expired.",
            ) from error
        if isinstance(done, AlreadyApplied):
            raise LeaseLostError(
                f"The lease {lease.name!r} is no longer held by {lease.holder}.",
                cause=f"The table contains the fence of a later holder than number {lease.fence}.",
                fix="Run the job again.",
            )
        return done.version
    raise StorageError(
        f"The takeover of the lease {lease.name!r} could not be recorded.",
        cause=f"Other writers won {_FENCE_TRIES} times.",
        fix="Run the job again.",
    )
