"""One history: its table, its workers' jobs and its faults, all drawn from a seed; and what was observed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random

import orjson

from delta_core.actions import Protocol
from delta_core.actions.json_codec import protocol_to_json
from tests.simulation.faults import Faults
from tests.simulation.scheduler import EPOCH_MS
from tests.simulation.store import DAY_SECONDS

PARTITIONS = ("a", "b")
RETENTIONS = ("interval 12 hours", "interval 1 day", "interval 2 days", "interval 7 days")
HOUR_MS = 3_600_000
BURST_WAITS = (0.0, 0.0, 0.2, 5.0)
LONG_WAITS = (0.0, 5.0, 4_000.0, DAY_SECONDS, 3 * DAY_SECONDS)
MAX_RUNS = 3


SCHEMA_STRING = (
    '{"type":"struct","fields":['
    '{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"p","type":"string","nullable":true,"metadata":{}}]}'
)


class Kind(StrEnum):
    """What a job does."""

    CREATE = "create"
    APPEND = "append"
    KEYED_APPEND = "append with a key"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    REWRITE = "rewrite"
    CHECKPOINT = "checkpoint"
    CLEANUP = "cleanup"
    READ = "read"
    TAKE_ROWS = "delete by vectors"
    MOVE_ROWS = "update by vectors"
    NUMBERED_APPEND = "append with generated numbers"
    DROP = "drop a feature"
    SWITCH = "switch a feature on"


_WEIGHTS = {
    Kind.APPEND: 4,
    Kind.KEYED_APPEND: 5,
    Kind.OVERWRITE: 2,
    Kind.DELETE: 3,
    Kind.REWRITE: 2,
    Kind.CHECKPOINT: 2,
    Kind.CLEANUP: 2,
    Kind.READ: 3,
}
UPKEEP = (Kind.CHECKPOINT, Kind.CLEANUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One thing to do; it is run again when its process ends or its outcome allows it.

    Attributes:
        name: unique in the history; also the key's application id.
        wait_seconds: how long the worker rests first.
        partition: what a job that reads the table looks at; None is all of it.
        aged: commit from the snapshot of the worker's last job, as a handle that is kept open does.
    """

    name: str
    kind: Kind
    wait_seconds: float = 0.0
    partition: str | None = None
    aged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A history before it has happened.

    Attributes:
        jobs: for each worker its jobs, in order.
        skews_ms: for each worker how far its clock is from the store's.
        configuration: table properties.
        exists: False when the workers race to create the table.
        remote: the store is one, so that the library reads side by side.
        features: writer features of the table, which is of the oldest protocol without any.
        schema_string: of the table.
        rows_per_file: of those that are there at first, where files say it.
        drops: whether features come and go.
    """

    seed: str
    faults: Faults
    jobs: tuple[tuple[Job, ...], ...]
    skews_ms: tuple[int, ...]
    configuration: dict[str, str]
    exists: bool
    remote: bool = False
    features: frozenset[str] = frozenset()
    schema_string: str = SCHEMA_STRING
    rows_per_file: int = 1
    drops: bool = False

    @property
    def protocol(self) -> Protocol:
        """The table's."""
        if not self.features:
            return Protocol(min_reader_version=1, min_writer_version=2)
        readers = self.features & {"deletionVectors", "v2Checkpoint"}
        if readers:
            return Protocol(
                min_reader_version=3,
                min_writer_version=7,
                reader_features=readers,
                writer_features=self.features,
            )
        return Protocol(min_reader_version=1, min_writer_version=7, writer_features=self.features)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a job that writes, as its caller saw it.

    Attributes:
        outcome: `committed`, `already applied`, `conflict`, `rejected`, `unknown`, `crashed`, or `error`.
        version: the version that the result names; None without one.
        read_version: the version that the run was based on; None when it got to none.
        files_referenced: as in `Rejected`.
        seen: the version and live paths of the snapshot that came with the result.
        detail: the rule, or the error.
        taken: which rows a deletion or an update by vectors takes: those whose id has this rest, the second,
            when it is divided by the first.
    """

    worker: int
    job: Job
    outcome: str
    txn_id: str = ""
    version: int | None = None
    read_version: int | None = None
    files_referenced: bool = False
    seen: tuple[int, frozenset[str]] | None = None
    detail: str = ""
    taken: tuple[int, int] | None = None


def labelled(path: str, dv: str | None) -> str:
    """A live file by its path and its vector."""
    return path if dv is None else f"{path}#{dv}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A table as a reader saw it.

    Attributes:
        began: how many changes the store had seen when the reader began.
        pinned: a version was asked for, not the newest.
    """

    worker: int
    version: int
    paths: frozenset[str]
    began: int = 0
    pinned: bool = False


@dataclass(slots=True)
class Record:
    """What was observed in a history, in order.

    Attributes:
        broken: errors that no caller should see.
        joined: deletions by vectors that were committed after another one of the same files.
        carried: rewrites that were committed after deletions of rows of their files.
        relocated: statements that were committed after a rewrite of their files.
    """

    events: list[Attempt | Observation] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    joined: int = 0
    carried: int = 0
    relocated: int = 0

    @property
    def attempts(self) -> list[Attempt]:
        """The runs of jobs that write."""
        return [event for event in self.events if isinstance(event, Attempt)]


def draw_plan(seed: str, *, is_long: bool | None = None, faults: Faults | None = None) -> Plan:
    """A history of 2 to 8 workers with one to four jobs each.

    Most are bursts: everybody at once, for a minute. The others go on for days, with checkpoints and
    cleanup of the log; those cost ten times as much.

    Args:
        seed: what draws the rest.
        is_long: of which sort; drawn when None.
        faults: what goes wrong; drawn when None.
    """
    random = Random(f"plan:{seed}")
    drawn = faults is None
    faults = faults or Faults.draw(random)
    is_long = random.random() < 0.03 if is_long is None else is_long
    workers = random.choice((2, 2, 3, 3, 4, 5, 8))
    exists = random.random() < 0.9
    offered = list(_WEIGHTS) if is_long else [kind for kind in _WEIGHTS if kind not in UPKEEP]
    kinds = [kind for kind in offered if random.random() < 0.6] or [Kind.APPEND, Kind.READ]
    weights = [_WEIGHTS[kind] for kind in kinds]
    waits = LONG_WAITS if is_long else BURST_WAITS
    most = 4 if workers <= 3 and is_long else 2
    keyed: list[str] = []
    jobs: list[tuple[Job, ...]] = []
    for worker in range(workers):
        mine = [] if exists else [Job(name=f"create-{worker}", kind=Kind.CREATE)]
        if is_long and worker == 0 and random.random() < 0.6:
            jobs.append((*mine, *_upkeep(random)))
            continue
        for number in range(random.randint(1, most)):
            kind = random.choices(kinds, weights)[0]
            name = f"job-{worker}-{number}"
            if kind is Kind.KEYED_APPEND:
                # Now and then the scheduler has started another worker's job a second time.
                name = random.choice(keyed) if keyed and random.random() < 0.4 else name
                keyed.append(name)
            mine.append(
                Job(
                    name=name,
                    kind=kind,
                    wait_seconds=random.choice(waits) * random.random(),
                    partition=random.choice((None, *PARTITIONS)),
                    aged=random.random() < 0.3,
                )
            )
        jobs.append(tuple(mine))
    configuration = {"delta.logRetentionDuration": random.choice(RETENTIONS)}
    if random.random() < 0.3:
        configuration["delta.isolationLevel"] = "Serializable"
    plan = Plan(
        seed=seed,
        faults=faults,
        jobs=tuple(jobs),
        skews_ms=tuple(random.randint(-HOUR_MS, HOUR_MS) for _ in range(workers)),
        configuration=configuration,
        exists=exists,
        remote=random.random() < 0.5,
    )
    return replace(plan, faults=faults.with_torn_listings(random)) if drawn else plan


def _upkeep(random: Random) -> list[Job]:
    """A load with maintenance, every few days: nothing else makes writers that sleep dangerous."""
    return [
        Job(
            name=f"upkeep-{round_}-{kind.value}",
            kind=kind,
            wait_seconds=random.choice((0.0, DAY_SECONDS, 4 * DAY_SECONDS)) * random.random(),
        )
        for round_ in range(3)
        for kind in (Kind.APPEND, Kind.CHECKPOINT, Kind.CLEANUP)
    ]


STAMPED = frozenset({"inCommitTimestamp", "rowTracking", "domainMetadata"})
"""Features whose part of a commit depends on the version that it becomes."""


def stamped(plan: Plan) -> Plan:
    """The same history on a table with these features."""
    configuration = {**plan.configuration, "delta.enableInCommitTimestamps": "true"}
    return replace(plan, configuration=configuration, features=STAMPED)


def first_commit(plan: Plan) -> bytes:
    """Version 0: two files in each partition. Made by hand, so that histories begin quickly."""
    lines: list[dict[str, object]] = [
        {
            "commitInfo": {"timestamp": EPOCH_MS, "operation": "CREATE TABLE", "txnId": "first"}
            | ({"inCommitTimestamp": EPOCH_MS} if plan.features else {})
        },
        {"protocol": protocol_to_json(plan.protocol)},
        {
            "metaData": {
                "id": "table",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": plan.schema_string,
                "partitionColumns": ["p"],
                "configuration": plan.configuration,
            }
        },
    ]
    lines += [
        {
            "add": {
                "path": f"p={value}/first-{number}.parquet",
                "partitionValues": {"p": value},
                "size": 1,
                "modificationTime": EPOCH_MS,
                "dataChange": True,
            }
            | (_numbers(2 * index + number, plan.rows_per_file) if plan.features else {})
        }
        for index, value in enumerate(PARTITIONS)
        for number in range(2)
    ]
    if plan.features:
        watermark = orjson.dumps(
            {"rowIdHighWaterMark": 2 * len(PARTITIONS) * plan.rows_per_file - 1}
        ).decode()
        domain = {"domain": "delta.rowTracking", "configuration": watermark, "removed": False}
        lines.append({"domainMetadata": domain})
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def _numbers(file: int, rows: int) -> dict[str, object]:
    return {
        "stats": f'{{"numRecords":{rows}}}',
        "baseRowId": file * rows,
        "defaultRowCommitVersion": 0,
    }
