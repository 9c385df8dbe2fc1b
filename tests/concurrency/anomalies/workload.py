"""Transactions on real small tables that overlap on purpose, and the history that they leave.

Each client loads a snapshot and reads, then waits while others commit, then runs its operation on what it
read. Some are interrupted once more, when their commit is prepared. Who goes when is drawn from a seed; with
threads, the machine decides as well.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa

from delta_core.data.row_files import write_data_files
from delta_core.dml.commit_files import commit_new_files
from delta_core.dml.write import write_deltalake
from delta_core.errors import ConcurrentModificationError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering.plan import plan_z_order
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.run import Run
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.isolation import IsolationLevel
from tests.concurrency.anomalies.history import DRAFT, Attempt, Commit, History, LogReader, Read, Row, matches
from tests.concurrency.matrix.footprint import Box
from tests.concurrency.matrix.layouts import Handle, template
from tests.concurrency.matrix.memory_store import MemoryStore
from tests.concurrency.matrix.operation import Interruption
from tests.concurrency.matrix.row_changes import RowChange, commit_row_change

PARTITIONS = ("p0", "p1")
IDS = 12
"""Ids that transactions fight for; appended rows get the ids beyond."""

CLIENTS = 5
_ALONE = InlineExecutor(1)

# How often each kind is drawn. Readers and rearrangements are there to be disturbed, and to disturb.
_WEIGHTS = {
    "append": 4,
    "update": 6,
    "two-step update": 1,
    "delete": 1,
    "merge": 3,
    "replace": 1,
    "insert after reading": 2,
    "compact": 2,
    "z-order": 1,
    "read": 2,
}


@dataclass
class Pending:
    """A transaction that has begun."""

    name: str
    kind: str
    snapshot: Snapshot
    box: Box
    new_id: int
    reads: tuple[Read, ...]


@dataclass
class Workload:
    """One table and the clients that work on it."""

    seed: str
    level: IsolationLevel
    store: MemoryStore = field(init=False)
    attempts: list[Attempt] = field(default_factory=list)
    conflicts: int = 0

    def __post_init__(self) -> None:
        self.store = template(self.level).store.fork()
        self._random = random.Random(self.seed)
        self._numbers = count(1)
        self._start = Snapshot.load(self.store)
        self._lock = threading.Lock()

    # ------------------------------------------------------------ schedules

    def interleave(self, transactions: int) -> History:
        """Run on one thread; the seed alone decides the order."""
        waiting: list[Pending] = []
        for _ in range(transactions):
            waiting.append(self.begin())
            if len(waiting) >= CLIENTS:
                self._finish_one(waiting, depth=0)
        while waiting:
            self._finish_one(waiting, depth=0)
        return self.history()

    def _finish_one(self, waiting: list[Pending], *, depth: int) -> None:
        pending = waiting.pop(self._random.randrange(len(waiting)))

        def others() -> None:
            if waiting and depth < 2 and self._random.random() < 0.3:
                self._finish_one(waiting, depth=depth + 1)

        self.finish(pending, Interruption(action=others))

    def race(self, transactions: int, *, threads: int) -> History:
        """Run on threads that share nothing but the store."""

        def one(_: int) -> None:
            with self._lock:
                pending = self.begin()
            self.finish(pending, Interruption())

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, range(transactions)))
        return self.history()

    # ------------------------------------------------------------ one transaction

    def begin(self) -> Pending:
        """Load the table and read what the outcome will rest on."""
        rng = self._random
        number = next(self._numbers)
        kind = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        partition = rng.choice(PARTITIONS)
        low = rng.randint(1, IDS)
        box = Box(partition=partition, low=low, high=low + rng.randint(0, 4))
        if kind in ("read", "insert after reading"):
            boxes = [Box(partition=name) for name in ("p0", "p1", "p2")]
        elif kind in ("append", "compact", "z-order"):
            boxes = []
        else:
            boxes = [box]
        snapshot = Snapshot.load(self.store)
        return Pending(
            name=f"t{number}",
            kind=kind,
            snapshot=snapshot,
            box=box,
            new_id=low if rng.random() < 0.5 else 100 + number,
            reads=tuple(_read(snapshot, one) for one in boxes),
        )

    def finish(self, pending: Pending, interruption: Interruption) -> None:
        """Run the operation, and note what its client is told."""
        version: int | None = None
        if pending.kind == "read":
            # A second look at the same snapshot, after others have committed.
            pending.reads += tuple(_read(pending.snapshot, read.box) for read in pending.reads)
        else:
            try:
                version = self._run(pending, interruption)
            except ConcurrentModificationError:
                with self._lock:
                    self.conflicts += 1
        attempt = Attempt(
            name=pending.name,
            read_version=pending.snapshot.version,
            version=version,
            reads=pending.reads,
            blind=pending.kind == "append",
            rearranges=pending.kind in ("compact", "z-order"),
        )
        with self._lock:
            self.attempts.append(attempt)

    def _run(self, pending: Pending, interruption: Interruption) -> int | None:
        snapshot, name = pending.snapshot, pending.name
        properties = CommitProperties(user_metadata=name)
        committed: object
        match pending.kind:
            case "append":
                committed = write_deltalake(
                    Handle(snapshot),
                    _table([(pending.new_id, pending.box.partition, name)]),
                    mode="append",
                    commit_properties=properties,
                    observer=interruption,
                )
            case "replace":
                new = [(pending.box.low, pending.box.partition, name)]
                committed = write_deltalake(
                    Handle(snapshot),
                    _table(new),
                    mode="overwrite",
                    predicate=_sql(pending.box),
                    commit_properties=properties,
                    observer=interruption,
                )
            case "insert after reading":
                adds = write_data_files(
                    snapshot.store,
                    _table([(pending.new_id, pending.box.partition, name)]),
                    schema=snapshot.schema,
                    partition_columns=snapshot.partition_columns,
                )
                committed = commit_new_files(
                    snapshot,
                    snapshot.store,
                    writer_kind=WriterKind.ARROW_ROWS,
                    mode="append",
                    adds=adds,
                    schema=snapshot.schema,
                    reads_table=True,
                    run=Run(commit=properties, observer=interruption),
                )
            case "compact":
                compaction = plan_compaction(snapshot, predicate=f"p = '{pending.box.partition}'")
                committed = apply_rewrite(
                    snapshot, compaction, run=Run(executor=_ALONE, commit=properties, observer=interruption)
                ).committed
            case "z-order":
                order = plan_z_order(snapshot, ["id", "v"], predicate=f"p = '{pending.box.partition}'")
                committed = apply_rewrite(
                    snapshot, order, run=Run(executor=_ALONE, commit=properties, observer=interruption)
                ).committed
            case _:
                if pending.kind == "two-step update":
                    self._write_drafts(pending)
                committed = commit_row_change(
                    snapshot, _change(pending), observer=interruption, properties=properties
                )
        return getattr(committed, "version", None)

    def _write_drafts(self, pending: Pending) -> None:
        """What a job writes before it changes its mind: files that no commit will name."""
        drafts = [
            (*row[:2], f"{row[2]},{pending.name}{DRAFT}") for read in pending.reads for row in read.rows
        ]
        if drafts:
            write_data_files(
                self.store,
                _table(drafts),
                schema=pending.snapshot.schema,
                partition_columns=pending.snapshot.partition_columns,
            )

    # ------------------------------------------------------------ what is left of it

    def history(self) -> History:
        """The log, read by other code than the library's, with what the clients saw."""
        reader = LogReader(self.store)
        while reader.version < self._start.version:
            reader.next()
        start = reader.rows
        return History(
            level=self.level,
            start_version=self._start.version,
            start=start,
            commits=tuple(_rest(reader)),
            attempts=tuple(self.attempts),
        )


def _rest(reader: LogReader) -> Iterator[Commit]:
    while (commit := reader.next()) is not None:
        yield commit


def _change(pending: Pending) -> RowChange:
    box, name = pending.box, pending.name

    def updated(row: Row) -> Row | None:
        return (row[0], row[1], f"{row[2]},{name}") if matches(box, row) else row

    if pending.kind == "delete":
        return RowChange(
            operation="DELETE", predicate=_sql(box), change=lambda row: None if matches(box, row) else row
        )
    if pending.kind.endswith("update"):
        return RowChange(operation="UPDATE", predicate=_sql(box), change=updated)
    return RowChange(
        operation="MERGE",
        predicate=_sql(box),
        change=updated,
        inserted=lambda rows: (
            ()
            if any(row[:2] == (box.low, box.partition) for row in rows)
            else ((box.low, box.partition, name),)
        ),
    )


def _sql(box: Box) -> str:
    return f"p = '{box.partition}' AND id >= {box.low} AND id <= {box.high}"


def _read(snapshot: Snapshot, box: Box) -> Read:
    predicate = _sql(box) if box != Box(partition=box.partition) else f"p = '{box.partition}'"
    found = Scan(snapshot, predicate=predicate, columns=["id", "p", "v"]).to_table().to_pydict()
    rows = sorted(zip(found["id"], found["p"], found["v"], strict=True))
    return Read(box=box, rows=tuple(rows))


def _table(rows: list[Row]) -> pa.Table:
    ids, partitions, values = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "p": list(partitions), "v": list(values)})
