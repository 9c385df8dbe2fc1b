"""What the workers run: jobs on the real core, and a runner that starts a job again as a scheduler would."""

from __future__ import annotations

import json
from random import Random

import pyarrow as pa

from delta_core.actions import AddFile, Metadata, SetTransaction
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.errors import DeltaError
from delta_core.expressions.ast import Column, Comparison, ComparisonOperator, Literal
from delta_core.schema.types import STRING
from delta_core.snapshot import monotonic_versions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import CommitResult, Committed, Conflict, Rejected, Unknown
from delta_core.transaction.conflict_resolver import ConflictResolver
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.transaction import Transaction
from tests.simulation.history import (
    MAX_RUNS,
    PARTITIONS,
    Attempt,
    Job,
    Kind,
    Observation,
    Plan,
    Record,
    labelled,
)
from tests.simulation.scheduler import Crashed, Scheduler, SimulatedClock
from tests.simulation.store import SimulatedStore

WRITES = frozenset(Kind) - {Kind.CREATE, Kind.READ, Kind.CHECKPOINT, Kind.CLEANUP}


class Program:
    """One worker's jobs, on the real core."""

    def __init__(
        self, number: int, plan: Plan, *, scheduler: Scheduler, store: SimulatedStore, record: Record
    ) -> None:
        self.number = number
        self.plan = plan
        self.record = record
        self._scheduler = scheduler
        self._store = store
        self._clock = SimulatedClock(scheduler)
        self._random = Random(f"worker:{plan.seed}:{number}")
        self._held: Snapshot | None = None
        self._files = 0
        self._running: dict[str, object] = {}

    def run(self) -> None:
        """Every job, each until it is done or has been run often enough."""
        for job in self.plan.jobs[self.number]:
            if job.wait_seconds:
                self._scheduler.sleep(job.wait_seconds)
            for _ in range(MAX_RUNS):
                if self._run_once(job):
                    break
                self._scheduler.sleep(self._random.choice((0.1, 5.0, 300.0)) * self._random.random())

    def _run_once(self, job: Job) -> bool:
        """One run; whether the job needs no other."""
        self._scheduler.note(f"begins {job.name} ({job.kind})")
        self._running = {}
        try:
            result = self._do(job)
        except Crashed:
            self._scheduler.current.dead = False
            self._held = None  # the process that comes next knows nothing
            monotonic_versions.KNOWN_VERSIONS.forget(self._store)
            self._note_end(job, "crashed")
            # Without a key nobody knows whether the job may be run again.
            return job.kind is not Kind.KEYED_APPEND and job.kind in WRITES
        except DeltaError as error:
            self._held = None
            self._note_end(job, "error", detail=type(error).__name__)
            return False
        except Exception as error:  # judged: whatever the store does, callers see typed errors
            self.record.broken.append(f"{job.name}: {type(error).__name__}: {error}")
            self._note_end(job, "error", detail=type(error).__name__)
            return True
        return True if result is None else self._note_result(job, result)

    def _do(self, job: Job) -> CommitResult | None:
        match job.kind:
            case Kind.READ:
                return self._read(job)
            case Kind.CHECKPOINT:
                write_checkpoint(self._load())
                return None
            case Kind.CLEANUP:
                cleanup_expired_logs(self._load(), clock=self._clock)
                return None
            case Kind.CREATE:
                return self._create(job)
            case Kind.APPEND | Kind.KEYED_APPEND:
                return self._append(job)
            case _:
                return self._change(job)

    # ------------------------------------------------------------ jobs

    def _load(self) -> Snapshot:
        return Snapshot.load(self._store, clock=self._clock)

    def _read(self, job: Job) -> None:
        began = len(self._store.ledger)
        snapshot = self._held.refresh() if job.aged and self._held is not None else self._load()
        self._observe(snapshot, began)
        self._held = snapshot
        if job.partition is not None and snapshot.version > 0:
            version = self._random.randint(max(0, snapshot.version - 3), snapshot.version)
            self._observe(Snapshot.load(self._store, version=version, clock=self._clock), began, pinned=True)

    def _observe(self, snapshot: Snapshot, began: int, *, pinned: bool = False) -> None:
        paths = live_paths(snapshot)
        self._scheduler.note(f"observes version {snapshot.version} with {len(paths)} files")
        self.record.events.append(
            Observation(worker=self.number, version=snapshot.version, paths=paths, began=began, pinned=pinned)
        )

    def _create(self, job: Job) -> CommitResult:
        transaction = Transaction.create(
            self._store, properties=_properties(job), clock=self._clock, random=self._random
        )
        self._running = {"txn_id": transaction.txn_id, "read_version": -1}
        metadata = Metadata(
            id=f"table-{job.name}",
            schema_string=self.plan.schema_string,
            partition_columns=("p",),
            configuration=self.plan.configuration,
        )
        return transaction.add(self.plan.protocol, metadata, self._new_file(job)).commit()

    def _begin(
        self,
        job: Job,
        *,
        aged: bool,
        resolver: ConflictResolver | None = None,
        snapshot: Snapshot | None = None,
    ) -> tuple[Snapshot, Transaction]:
        if snapshot is None:
            snapshot = self._held if aged and self._held is not None else self._load()
        transaction = Transaction.begin(
            snapshot,
            operation=job.kind.value,
            properties=_properties(job),
            clock=self._clock,
            random=self._random,
            resolver=resolver,
        )
        self._running = {"txn_id": transaction.txn_id, "read_version": snapshot.version}
        return snapshot, transaction

    def _append(self, job: Job) -> CommitResult:
        _, transaction = self._begin(job, aged=job.aged)
        files = [self._new_file(job) for _ in range(self._random.choice((1, 1, 2)))]
        return transaction.add(*files).commit()

    def _change(self, job: Job) -> CommitResult | None:
        """An overwrite takes all that it saw, a deletion one file, a rewrite two that become one."""
        snapshot, transaction = self._begin(job, aged=job.aged)
        files = snapshot.files.to_table()
        if job.partition is not None:
            values = [dict(value)["p"] for value in files.column("partition_values").to_pylist()]
            files = files.filter(pa.array([value == job.partition for value in values], pa.bool_()))
        if job.kind is not Kind.OVERWRITE:
            # Not always the first one: two deletions of different files are a case of their own.
            first = self._random.randrange(max(1, files.num_rows))
            files = files.slice(first, 1 if job.kind is Kind.DELETE else 2)
        if not files.num_rows and job.kind is not Kind.OVERWRITE:
            return None
        rearranged = job.kind is Kind.REWRITE
        transaction.add(
            *remove_actions(files, deletion_timestamp_ms=self._clock.now_ms(), data_change=not rearranged)
        )
        if job.kind is Kind.DELETE:
            transaction.read_predicate(partition_is(job.partition))
            transaction.read_files(files.column("path").to_pylist())
        else:
            if not rearranged:
                transaction.read_predicate(partition_is(job.partition))
            partition = job.partition or PARTITIONS[0]
            transaction.add(self._new_file(job, partition=partition, data_change=not rearranged))
        return transaction.commit()

    def _new_file(self, job: Job, *, partition: str | None = None, data_change: bool = True) -> AddFile:
        self._files += 1
        value = partition or self._random.choice(PARTITIONS)
        return AddFile(
            path=f"p={value}/{job.name}-{self.number}-{self._files}.parquet",
            partition_values={"p": value},
            size_bytes=self._files,
            modification_time_ms=self._clock.now_ms(),
            data_change=data_change,
            stats=json.dumps({"numRecords": self._files % 4}) if self.plan.features else None,
        )

    # ------------------------------------------------------------ what became of them

    def _note_result(self, job: Job, result: CommitResult) -> bool:
        match result:
            case Committed():
                seen = None
                if result.snapshot is not None:
                    self._held = result.snapshot
                    seen = self._seen(result.snapshot)
                outcome = "already applied" if result.already_applied else "committed"
                self._note_end(job, outcome, version=result.version, seen=seen)
                return True
            case Conflict():
                self._held = None
                self._note_end(job, "conflict", detail=result.rule)
                return job.kind is Kind.CREATE
            case Rejected():
                self._held = None
                self._note_end(
                    job,
                    "rejected",
                    files_referenced=result.files_referenced,
                    detail=type(result.error).__name__,
                )
                return False
            case Unknown():
                self._held = None
                self._note_end(job, "unknown", version=result.version, detail=result.error.cause)
                return job.kind is not Kind.KEYED_APPEND

    def _seen(self, snapshot: Snapshot) -> tuple[int, frozenset[str]] | None:
        try:
            return snapshot.version, live_paths(snapshot)
        except (DeltaError, Crashed):
            # The commit stands; the checkpoint that the list of files needs could not be read.
            self._scheduler.current.dead = False
            return None

    def _note_end(
        self,
        job: Job,
        outcome: str,
        *,
        version: int | None = None,
        files_referenced: bool = False,
        seen: tuple[int, frozenset[str]] | None = None,
        detail: str = "",
    ) -> None:
        at = "" if version is None else f" at version {version}"
        self._scheduler.note(f"ends {job.name}: {outcome}{at} {detail}".rstrip())
        attempt = Attempt(
            worker=self.number,
            job=job,
            outcome=outcome,
            version=version,
            files_referenced=files_referenced,
            seen=seen,
            detail=detail,
            **self._running,  # type: ignore[arg-type]
        )
        self.record.events.append(attempt)


def live_paths(snapshot: Snapshot) -> frozenset[str]:
    """The live files' paths, with their vectors if they have any; one that is there twice stays visible."""
    files = snapshot.files.to_table(columns=["path", "deletion_vector"]).to_pylist()
    paths = [labelled(row["path"], (row["deletion_vector"] or {}).get("path_or_inline_dv")) for row in files]
    return frozenset(paths) if len(set(paths)) == len(paths) else frozenset([*paths, "TWICE"])


def partition_is(value: str | None) -> Comparison | None:
    if value is None:
        return None
    return Comparison(ComparisonOperator.EQ, Column(("p",)), Literal(value, STRING))


def _properties(job: Job) -> CommitProperties:
    key = SetTransaction(app_id=job.name, version=1) if job.kind is Kind.KEYED_APPEND else None
    return CommitProperties(user_name="worker", engine_info="simulation", txn=key, max_attempts=50)
