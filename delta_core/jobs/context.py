"""What a job handler works with."""

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
from delta_core.execution.progress import NullProgress, ProgressSink
from delta_core.execution.reporter import ProgressReporter
from delta_core.jobs.job_result import JobErrorInfo, JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import open_allowed_roots
from delta_core.storage.lease import DEFAULT_TTL_SECONDS, Lease
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import options_for
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver

_DEFAULT_DEADLINE_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The surroundings of a job. Callers give the first six; `run_job` sets the others.

    Attributes:
        executor: runs task maps.
        progress: receives the job's events.
        storage_options: resolved from `JobSpec.storage_ref` by the driver, for all stores of the job; what is
            local takes none: `delta_core.storage.open.options_for`.
        observer: sees the commit's phases; a handler hands it to everything that commits.
        lease_ttl_seconds: how long the lease of a spec that asks for one outlives a job that died.
        job_id: the job's id, never empty inside a handler.
        store: the table's store.
        snapshot: the newest version when the job started; None when there is no table.
        lease: the one that the job holds; None when it asked for none.
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
        """Emits this job's events."""
        return ProgressReporter(sink=self.progress, job_id=self.job_id, clock=self.clock)

    def with_table(self, spec: JobSpec, *, required: bool = True) -> JobContext:
        """The context with the newest snapshot of the job's table.

        Args:
            spec: names the table, and the id that it must have.
            required: False gives the context without a snapshot where there is no table.

        Raises:
            TableNotFoundError: there is no table, and it is required or its id is given.
            JobError: the table there has another id.
        """
        store = self.require_store()
        try:
            snapshot = Snapshot.load(store, clock=self.clock)
        except TableNotFoundError:
            if required or spec.table.id is not None:
                raise
            return self
        found = snapshot.metadata.id
        if spec.table.id is not None and spec.table.id != found:
            raise JobError(
                f"the table at {store.uri} is not the one this job is for",
                cause=f"the job names the table id {spec.table.id}, the table there has {found}",
                fix="plan the job again for the table that is there now",
            )
        self.reporter.emit("snapshot.loaded", version=snapshot.version, table_id=found)
        return replace(self, snapshot=snapshot)

    def allowed_roots(self, spec: JobSpec) -> tuple[LogStore, ...]:
        """The stores of `params.allowed_root_uris`: where absolute paths of the log may lead. No request.

        Raises:
            InvalidUriError: no store serves a URI.
            ConfigurationError: one is the whole file system.
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
            raise JobError("the job has no table open", fix="run the handler through run_job")
        return self.store

    def require_snapshot(self) -> Snapshot:
        """The table's snapshot.

        Raises:
            TableNotFoundError: there is no table.
        """
        if self.snapshot is None:
            uri = self.store.uri if self.store else "the job's URI"
            raise TableNotFoundError(f"there is no Delta table at {uri}", fix="create it first")
        return self.snapshot

    def executor_for(self, spec: JobSpec, *, planned_bytes: int) -> Executor:
        """The executor for that much data: this context's one, or threads when the data is small.

        Raises:
            ConfigurationError: the spec asks for Spark and there is none.
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
        """Stop a job whose time is over.

        Raises:
            JobError: the deadline has passed.
        """
        remaining = self.remaining_seconds(spec)
        if remaining <= 0:
            raise JobError(
                f"the deadline passed {-remaining:.0f} s ago, before the job could commit",
                fix="give the job a later deadline, or find out why it started late",
            )

    def check_lease(self) -> None:
        """Stop a job that no longer holds its lease, before something that is no commit. Two requests.

        Raises:
            LeaseLostError: the lease is lost.
            StorageError: the store does not tell.
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
        """A successful result for this job; versions default to the snapshot's."""
        return self._result(spec, JobStatus.SUCCEEDED, fields)

    def failed(self, spec: JobSpec, error: DeltaError, **fields: Any) -> JobResult:
        """A failed result that, unlike a raised error, can carry output."""
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
    """The `txn` action of the delivery that the job brings once more; None as a rule."""
    delivery = None if spec.idempotency is None else spec.idempotency.delivery
    if delivery is None:
        return None
    return SetTransaction(app_id=delivery.app_id, version=delivery.version, last_updated_ms=clock.now_ms())
