"""Running a plan: each verb under the table's lease, once, and recorded in the ledger.

A run that was killed is continued with the same plan. Verbs with a row in the ledger are passed over. A verb
that committed before its row was written is found in the table's log by the plan's idempotency key. A verb
that left a lease behind waits until the lease expires.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.errors import DeltaError, JobError, LeaseHeldError
from delta_core.fleet.ledger import Ledger, Row, day_of, days_ago, instant
from delta_core.fleet.plan import Entry, FleetPlan
from delta_core.jobs.applied import applied_action
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobErrorInfo, JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store, options_for

LEASE: Final = "maintenance"
"""The lease that every verb holds on its table; the maintenance of `delta_airflow` holds the same one."""

METADATA_KEY: Final = "deltaward_fleet"
"""The key of the user metadata of a verb's commit, with the plan's id and the verb."""

_DONE: Final = ("succeeded", "not_due", "superseded", "failed", "unknown", "closed")
_FAILED: Final = ("failed", "unknown")
_STOPPED: Final = "JOB_DEADLINE_EXCEEDED"
_WAIT_STEP_SECONDS = 1.0
_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The surroundings of a run.

    Attributes:
        ledger: where each verb is recorded, and where those of an earlier try are found.
        context: what the jobs run with. Its lease time is also the longest wait for a lease that is held.
        provenance: who runs the plan, such as an Airflow run; recorded with each verb.
        log_url: a link to the log of the run.
        approved: whether verbs that need an approval may run.
        run: runs a job and returns its result; it must not raise a DeltaError.
        price_per_cpu_hour: the price of CPU time.
    """

    ledger: Ledger
    context: JobContext = field(default_factory=JobContext)
    provenance: Mapping[str, Any] = field(default_factory=dict, hash=False)
    log_url: str | None = None
    approved: bool = False
    run: Callable[[JobSpec, JobContext], JobResult] = run_job
    price_per_cpu_hour: float = 0.0


def apply_plan(plan: FleetPlan, application: Application) -> Iterator[Row]:
    """Run the verbs of a plan, in order, and yield the row of `runs` of each.

    Verbs of this plan that an earlier try finished are passed over. A verb whose table is held by another job
    is tried again after the others, until the lease would have expired. A verb that fails does not stop the
    others, except the later ones of its table.

    Raises:
        StorageError: the ledger cannot be read or written.
    """
    ledger = application.ledger
    since = days_ago(plan.created_ms, 1)
    earlier = {
        (row["uri"], row["verb"]): row["outcome"]
        for row in ledger.runs(since=since, columns=("plan_id", "uri", "verb", "outcome"))
        if row["plan_id"] == plan.plan_id and row["outcome"] in _DONE
    }
    seen = {uri: row["seen"] for uri, row in ledger.fleet_rows(("uri", "name", "seen")).items()}
    waiting = [entry for entry in plan.entries if (entry.uri, entry.verb) not in earlier]
    waiting = [entry for entry in waiting if application.approved or not entry.needs_approval]
    clock = application.context.clock
    give_up = clock.monotonic_seconds() + 1.5 * application.context.lease_ttl_seconds
    failed = {uri for (uri, _), outcome in earlier.items() if outcome in _FAILED}
    while waiting:
        busy: list[tuple[Entry, Row]] = []
        held: set[str] = set()
        for entry in waiting:
            if entry.uri in failed:
                continue
            if entry.uri in held:
                busy.append((entry, {}))
                continue
            row = _run(entry, plan, application, seen.get(entry.uri))
            if row["outcome"] == "busy":
                held.add(entry.uri)
                busy.append((entry, row))
                continue
            ledger.append("runs", [row])
            if row["outcome"] in _FAILED:
                failed.add(entry.uri)
            yield row
        if busy and clock.monotonic_seconds() >= give_up:
            rows = [row for _, row in busy if row]
            ledger.append("runs", rows)
            yield from rows
            return
        waiting = [entry for entry, _ in busy]
        if waiting:
            clock.sleep(_WAIT_STEP_SECONDS)


def _run(entry: Entry, plan: FleetPlan, application: Application, seen: str | None) -> Row:
    clock = application.context.clock
    started_ms = clock.now_ms()
    row = _row(entry, plan, application, started_ms)
    if entry.until_ms is not None and started_ms >= entry.until_ms:
        return row | {"outcome": "closed", "reason": "the window is over"}
    key = IdempotencyKey(app_id=f"deltaward-fleet/{entry.verb}", version=plan.plan_id)
    spec = JobSpec(
        kind=entry.kind,
        table=TableRef(uri=entry.uri, id=entry.table_id),
        params=entry.params,
        idempotency=key,
        lease=LEASE,
        deadline_ms=entry.until_ms,
        engine=entry.engine,
        user_metadata={
            **application.provenance,
            METADATA_KEY: {"plan_id": plan.plan_id, "run_id": plan.run_id, "verb": entry.verb},
        },
    )
    decided = _decide_again(entry, application, seen)
    if decided.error is not None:
        return _finished(row, decided, application)
    reason = next(item["reason"] for item in decided.output["decisions"] if item["verb"] == entry.verb)
    if entry.verb not in decided.output["due"] and not _has_run(spec, entry, application, decided):
        return row | {"outcome": "not_due", "reason": reason, "finished_at": instant(clock.now_ms())}
    result = application.run(spec, application.context)
    finished = _finished(row, result, application, plan=plan)
    if finished["outcome"] == "failed" and result.error is not None and result.error.retryable:
        # A writer that holds no lease may have done the work, and the commit conflicts with it.
        again = _decide_again(entry, application, seen)
        if again.error is None and entry.verb not in again.output["due"]:
            reason = f"another writer did the work: {result.error.message}"
            return finished | {"outcome": "not_due", "reason": reason, "error_code": None, "error": None}
    return finished


def _has_run(spec: JobSpec, entry: Entry, application: Application, decided: JobResult) -> bool:
    """Whether the table has the verb's key, so that the job finds its commit and does no work."""
    if spec.kind != "optimize" or (decided.version_to or 0) <= entry.version:
        return False
    context = application.context
    options = options_for(entry.uri, context.storage_options)
    store = open_store(entry.uri, storage_options=options, clock=context.clock)
    try:
        snapshot = Snapshot.load(store, clock=context.clock)
    except DeltaError:
        return True  # The job fails in the same way, and its row has the error.
    return applied_action(spec, snapshot, context) is not None


def _decide_again(entry: Entry, application: Application, seen: str | None) -> JobResult:
    params: dict[str, Any] = {"rules": dict(entry.rules)}
    if seen is not None:
        params["since"] = json.loads(seen)
    spec = JobSpec(kind="plan", table=TableRef(uri=entry.uri, id=entry.table_id), params=params)
    return run_job(spec, application.context)


def _row(entry: Entry, plan: FleetPlan, application: Application, started_ms: int) -> Row:
    return {
        "day": day_of(started_ms),
        "started_at": instant(started_ms),
        "finished_at": instant(started_ms),
        "run_id": plan.run_id,
        "plan_id": plan.plan_id,
        "name": entry.name,
        "uri": entry.uri,
        "table_id": entry.table_id,
        "version": entry.version,
        "verb": entry.verb,
        "reason": entry.reason,
        "gain": entry.gain,
        "predicted_files": entry.files,
        "predicted_bytes": entry.size_bytes,
        "predicted_cpu_seconds": entry.cpu_seconds,
        "commits": [],
        "provenance": json.dumps(dict(application.provenance)) if application.provenance else None,
        "log_url": application.log_url,
    }


def _finished(row: Row, result: JobResult, application: Application, *, plan: FleetPlan | None = None) -> Row:
    metrics = result.metrics
    row = row | {
        "finished_at": instant(application.context.clock.now_ms()),
        "job_id": result.job_id,
        "version_to": result.version_to,
        "requests": metrics.requests,
        "bytes_read": metrics.bytes_read,
        "bytes_written": metrics.bytes_written,
        "cpu_seconds": metrics.cpu_seconds,
        "wall_seconds": metrics.wall_seconds,
        "peak_rss_bytes": metrics.peak_rss_bytes,
        "money": (metrics.cpu_seconds or 0.0) / 3600 * application.price_per_cpu_hour,
    }
    if result.error is not None:
        return row | _failure(result, result.error)
    if result.already_applied:
        return row | _found(result, plan)
    actual = result.actual
    files = actual.get("files_removed", actual.get("files_deleted"))
    if row["verb"] == "checkpoint" and actual.get("written"):
        files = row["predicted_files"]
    return row | {
        "outcome": "succeeded",
        "commits": list(result.commits),
        "actual_files": files,
        "actual_bytes": actual.get("bytes_removed", actual.get("bytes_deleted")),
        "files_added": actual.get("files_added"),
        "bytes_added": actual.get("bytes_added"),
    }


def _failure(result: JobResult, error: JobErrorInfo) -> Row:
    outcome = "unknown" if result.status is JobStatus.UNKNOWN else "failed"
    if error.code == LeaseHeldError.code:
        outcome = "busy"
    late = error.code == JobError.code and error.message.startswith("The deadline")
    if late or error.code == _STOPPED:
        outcome = "closed"
    return {"outcome": outcome, "error_code": error.code, "error": error.message}


def _found(result: JobResult, plan: FleetPlan | None) -> Row:
    """The outcome of a verb whose key the table already has: of this plan, or of a later one."""
    applied = result.applied_by
    own = {} if applied is None else applied.user_metadata.get(METADATA_KEY) or {}
    if applied is not None and plan is not None and own.get("plan_id") == plan.plan_id:
        reason = "an earlier try of this plan committed it"
        return {"outcome": "succeeded", "commits": [applied.version], "reason": reason}
    return {"outcome": "superseded", "reason": "a later plan did the work"}
