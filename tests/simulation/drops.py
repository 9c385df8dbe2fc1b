"""Histories in which features are dropped, and switched on again, beside everything else.

Data files are names here, so their rows are rewritten by name: a new file says in its own how many it holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from delta_core.dml.definition.properties import set_properties
from delta_core.errors import CommitStateUnknownError
from delta_core.execution.executor import JsonObject, TaskFunction
from delta_core.maintenance.feature_drop import drop_feature
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import CommitResult, Unknown
from tests.simulation.history import STAMPED, Job, Kind, Plan
from tests.simulation.rows import ROWS_PER_FILE, RowProgram

SWITCHES = {
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
}
"""What histories switch on again."""

DROPPED = (*SWITCHES, "rowTracking", "checkpointProtection")
FEATURES = STAMPED | {"deletionVectors", "v2Checkpoint"}
_IDS = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
}
_REWRITTEN = re.compile(r"of-(\d+)-rows\.parquet$")


def dropping(plan: Plan) -> Plan:
    """The same history on a table with features, some of whose jobs drop them or switch them on."""
    random = Random(f"drops:{plan.seed}")

    def changed(job: Job) -> Job:
        if job.kind is Kind.REWRITE or (job.kind in (Kind.READ, Kind.APPEND) and random.random() < 0.25):
            return replace(job, kind=random.choice((Kind.DROP, Kind.DROP, Kind.SWITCH)))
        if job.kind in (Kind.DELETE, Kind.OVERWRITE) and random.random() < 0.7:
            return replace(job, kind=Kind.TAKE_ROWS)
        return job

    jobs = [tuple(map(changed, mine)) for mine in plan.jobs]
    worker = random.randrange(len(jobs))
    jobs[worker] = (*jobs[worker], Job(name=f"drop-{worker}", kind=Kind.DROP, aged=random.random() < 0.3))
    configuration = {**plan.configuration, **_IDS}
    for properties in SWITCHES.values():
        configuration |= properties if random.random() < 0.7 else {}
    if random.random() < 0.5:
        configuration["delta.dropFeatureTruncateHistory.retentionDuration"] = "interval 1 hours"
    configuration["delta.checkpointInterval"] = random.choice(("2", "10"))
    return replace(
        plan,
        jobs=tuple(jobs),
        configuration=configuration,
        features=FEATURES,
        rows_per_file=ROWS_PER_FILE,
        drops=True,
    )


class DropProgram(RowProgram):
    """One worker's jobs on such a table."""

    _rewrites_rows = False

    def _do(self, job: Job) -> CommitResult | None:
        if job.kind in (Kind.DROP, Kind.SWITCH):
            try:
                return self._drop(job) if job.kind is Kind.DROP else self._switch(job)
            except CommitStateUnknownError as error:
                return Unknown(version=-1, txn_id="", error=error)
        return super()._do(job)

    def _drop(self, job: Job) -> CommitResult:
        random = Random(f"{self.plan.seed}:{job.name}")
        snapshot = self._snapshot(job)
        offered = [name for name in DROPPED if name in (snapshot.protocol.writer_features or ())]
        feature = random.choice(offered or DROPPED)
        truncates = feature == "checkpointProtection" or (
            feature in ("deletionVectors", "v2Checkpoint") and random.random() < 0.4
        )
        self._scheduler.note(f"  drops {feature}{' with its history' if truncates else ''}")
        result = drop_feature(
            snapshot,
            feature,
            truncate_history=truncates,
            run=Run(commit=_PROPERTIES, executor=_Renaming(self), clock=self._clock),
        )
        self._running = {"txn_id": result.txn_id}
        return result

    def _switch(self, job: Job) -> CommitResult:
        random = Random(f"{self.plan.seed}:{job.name}")
        properties = SWITCHES[random.choice(tuple(SWITCHES))]
        result = set_properties(
            self._snapshot(job), properties, run=Run(commit=_PROPERTIES, clock=self._clock)
        )
        self._running = {"txn_id": result.txn_id}
        return result

    def _snapshot(self, job: Job) -> Snapshot:
        return self._held if job.aged and self._held is not None else self._load()

    def _takes_by_deletion_vectors(self, snapshot: Snapshot) -> bool:
        return snapshot.metadata.configuration.get("delta.enableDeletionVectors") == "true"

    def rewritten(self, task: JsonObject) -> JsonObject:
        """The file that holds the rows of a task's files."""
        source_rows = [_rows(file["path"]) - _deleted(file) for file in task["files"]]
        rows = sum(source_rows)
        self._files += 1
        partition = task["partition_values"]["p"]
        path = f"p={partition}/rewritten-{self.number}-{self._files}-of-{rows}-rows.parquet"
        with self._store.open_output(path) as sink:
            sink.write(b"rows")
        return {
            "path": path,
            "size_bytes": 4,
            "modification_time_ms": self._clock.now_ms(),
            "stats": json.dumps({"numRecords": rows}),
            "rows": rows,
            "source_rows": source_rows,
            "parity": f"{rows:016x}",
        }


class _Renaming:
    """An executor whose tasks make a file of a name, whatever they are asked for."""

    name = "simulated"

    def __init__(self, program: DropProgram) -> None:
        self._program = program

    def cores_per_task(self, tasks: int) -> int:
        return 1

    def map(self, function: TaskFunction, tasks: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject]]:
        for index, task in enumerate(tasks):
            yield index, self._program.rewritten(task)


_PROPERTIES = CommitProperties(user_name="worker", engine_info="simulation", max_attempts=50)


def _rows(path: str) -> int:
    found = _REWRITTEN.search(path)
    return int(found[1]) if found else ROWS_PER_FILE


def _deleted(file: JsonObject) -> int:
    dv = file.get("deletion_vector")
    return int(dv["cardinality"]) if dv else 0
