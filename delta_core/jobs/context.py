"""The context of a job handler: stores, snapshot, executor, lease and results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from delta_core.actions.set_transaction import SetTransaction
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import CommitStateUnknownError, DeltaError, JobError, TableNotFoundError
from delta_core.execution.engine import choose_engine
from delta_core.execution.executor import Executor
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.progress import NullProgress, ProgressReporter, ProgressSink
from delta_core.jobs.job_result import JobErrorInfo, JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec
from delta_core.leases.lease import DEFAULT_TTL_SECONDS, Lease
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import open_allowed_roots
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import options_for
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver

_DEFAULT_DEADLINE_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The environment of a job. Callers set the first six fields; `run_job` sets the others.

    Attributes:
        executor: runs task maps.
        progress: receives the job's events.
        storage_options: resolved by the driver from `JobSpec.storage_ref`, for all stores of the job. A local
            store takes no options: see `delta_core.storage.options_for`.
        observer: receives the phases of each commit. A handler passes it to every transaction.
        lease_ttl_seconds: how long the job's lease remains after the job died.
        job_id: the job's id, never empty inside a handler.
        store: the table's store.
        snapshot: the newest version when the job started; None when the table does not exist.
        lease: the lease that the job holds; None when the spec names no lease.
    """

    executor: Executor = field(default_factory=InlineExecutor)
    clock: Clock = SYSTEM_CLOCK
    progress: ProgressSink = field(default_factory=NullProgress)
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    observer: TransactionObserver = NULL_OBSERVER
    lease_ttl_seconds: float = DEFAULT_TTL_SECONDS
    job_id: str = ""
    store: LogStore | None = None
    snapshot: Snapshot | None = None
    lease: Lease | None = None

    @property
    def reporter(self) -> ProgressReporter:
        """The reporter that emits this job's events."""
        return ProgressReporter(sink=self.progress, job_id=self.job_id, clock=self.clock)

    @property
    def run(self) -> Run:
        """The surroundings of the job's operations, without the commit properties and allowed roots."""
        return Run(clock=self.clock, executor=self.executor, progress=self.reporter, observer=self.observer)

    def with_table(self, spec: JobSpec, *, required: bool = True) -> JobContext:
        """The context with the newest snapshot of the job's table.

        Args:
            spec: names the table, and the id that it must have.
            required: False returns the context without a snapshot when the table does not exist.

        Raises:
            TableNotFoundError: the table does not exist, and it is required or its id is given.
            JobError: the id of the table at the URI is not the id in the spec.
        """
        store = self.require_store()
        try:
            snapshot = Snapshot.load(store, clock=self.clock)
        except TableNotFoundError:
            if required or spec.table.id is not None:
                raise
            return self
        table_id = snapshot.metadata.id
        if spec.table.id is not None and spec.table.id != table_id:
            raise JobError(
                f"The table at {store.uri} is not the table of this job.",
                cause=f"The job names the table id {spec.table.id}; the table has the id {table_id}.",
                fix="Plan the job again for the table that is now at this URI.",
            )
        self.reporter.emit("snapshot.loaded", version=snapshot.version, table_id=table_id)
        return replace(self, snapshot=snapshot)

    def allowed_roots(self, spec: JobSpec) -> tuple[LogStore, ...]:
        """The stores of `params.allowed_root_uris`, for absolute paths in the log. No request.

        Raises:
            InvalidUriError: no store serves a URI.
            ConfigurationError: a root is the whole file system.
        """
        return tuple(
            store
            for uri in spec.params.get("allowed_root_uris") or ()
            for store in open_allowed_roots(
                [uri], storage_options=options_for(uri, self.storage_options), clock=self.clock
            )
        )

    def require_store(self) -> LogStore:
        """The table's store.

        Raises:
            JobError: the context did not come from `run_job`.
        """
        if self.store is None:
            raise JobError("The job has not opened its table.", fix="Run the handler through run_job.")
        return self.store

    def require_snapshot(self) -> Snapshot:
        """The table's snapshot.

        Raises:
            TableNotFoundError: the table does not exist.
        """
        if self.snapshot is None:
            uri = self.store.uri if self.store else "the job's URI"
            raise TableNotFoundError(f"No Delta table exists at {uri}.", fix="Create the table first.")
        return self.snapshot

    def executor_for(self, spec: JobSpec, *, planned_bytes: int) -> Executor:
        """The executor for the amount of data: the context's executor, or threads when the data is small.

        Raises:
            ConfigurationError: the spec asks for Spark and the context has no Spark executor.
        """
        available = self.executor.name == "spark"
        engine = choose_engine(spec.engine, planned_bytes, spark_available=available)
        return InlineExecutor() if engine == "inline" and available else self.executor

    def remaining_seconds(self, spec: JobSpec) -> float:
        """Time until the deadline; infinite without one."""
        if spec.deadline_ms is None:
            return float("inf")
        return (spec.deadline_ms - self.clock.now_ms()) / 1000

    def check_deadline(self, spec: JobSpec) -> None:
        """Stop a job whose deadline has passed.

        Raises:
            JobError: the deadline has passed.
        """
        remaining = self.remaining_seconds(spec)
        if remaining <= 0:
            raise JobError(
                f"The deadline passed {-remaining:.0f} s ago, before the job could commit.",
                fix="Give the job a later deadline, or find out why it started late.",
            )

    def check_lease(self) -> None:
        """Stop a job that no longer holds its lease, before a change that is not a commit. Two requests.

        Raises:
            LeaseLostError: the lease is lost.
            StorageError: the store fails.
        """
        if self.lease is not None:
            self.lease.check()

    def commit_properties(self, spec: JobSpec) -> CommitProperties:
        """Provenance, idempotency key and time limit for a commit of this job.

        Raises:
            JobError: the deadline has passed.
        """
        self.check_deadline(spec)
        return CommitProperties(
            user_metadata=json.dumps(dict(spec.user_metadata)) if spec.user_metadata else None,
            txn=idempotency_action(spec, clock=self.clock),
            delivery=delivery_action(spec, clock=self.clock),
            deadline_seconds=min(_DEFAULT_DEADLINE_SECONDS, self.remaining_seconds(spec)),
        )

    def succeeded(self, spec: JobSpec, **fields: Any) -> JobResult:
        """A successful result of this job. The versions default to the snapshot's version."""
        return self._result(spec, JobStatus.SUCCEEDED, fields)

    def failed(self, spec: JobSpec, error: DeltaError, **fields: Any) -> JobResult:
        """A failed result. Unlike a raised error, the result can contain output."""
        status = JobStatus.UNKNOWN if isinstance(error, CommitStateUnknownError) else JobStatus.FAILED
        info = JobErrorInfo(code=error.code, message=str(error), retryable=error.retryable)
        return self._result(spec, status, {"error": info, **fields})

    def _result(self, spec: JobSpec, status: JobStatus, fields: Mapping[str, Any]) -> JobResult:
        version = self.snapshot.version if self.snapshot else None
        versions = {"version_from": version, "version_to": version}
        return JobResult(job_id=self.job_id, kind=spec.kind, status=status, **{**versions, **fields})


def idempotency_action(spec: JobSpec, *, clock: Clock) -> SetTransaction | None:
    """The `txn` action that records the spec's idempotency key."""
    key = spec.idempotency
    if key is None:
        return None
    return SetTransaction(app_id=key.app_id, version=key.version, last_updated_ms=clock.now_ms())


def delivery_action(spec: JobSpec, *, clock: Clock) -> SetTransaction | None:
    """The `txn` action of the delivery that the job repeats; usually None."""
    delivery = None if spec.idempotency is None else spec.idempotency.delivery
    if delivery is None:
        return None
    return SetTransaction(app_id=delivery.app_id, version=delivery.version, last_updated_ms=clock.now_ms())
