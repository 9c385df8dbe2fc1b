"""The table that every cell starts from, and where in it two operations meet.

partition p0   A1 {2, 4}    A2 {6, 8}    B1 {10, 12}    B2 {14, 16}
partition p1   C1 {1, 3}    C2 {5, 7}
partition p2   D2 {92}                                  (replaced D1 {90} in the last version)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

import pyarrow as pa

from delta_core.dml.definition.constraints import add_constraint
from delta_core.dml.definition.create import create_table
from delta_core.dml.write import write_deltalake
from delta_core.run import Run
from delta_core.schema.types import LONG, STRING, StructField, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.file_actions import add_actions
from delta_core.transaction.isolation import IsolationLevel
from tests.concurrency.matrix.memory_store import MemoryStore
from tests.concurrency.matrix.state import CHECK, OWNER, TableState

FILE_ROWS: dict[str, tuple[int, int]] = {
    "A1": (2, 4),
    "A2": (6, 8),
    "B1": (10, 12),
    "B2": (14, 16),
    "C1": (1, 3),
    "C2": (5, 7),
    "D2": (92, 92),
}
"""The ids in each live file, by the file's label."""

PARTITION_FILES: dict[str, frozenset[str]] = {
    "p0": frozenset({"A1", "A2", "B1", "B2"}),
    "p1": frozenset({"C1", "C2"}),
    "p2": frozenset({"D2"}),
}
ALL_FILES = frozenset(FILE_ROWS)

RESTORED_VERSION = 4
"""What a restore goes back to: the version before the last one, with D1 in place of D2."""

ORPHAN = "p=p0/part-of-a-writer-that-died.parquet"
_LONG_AGO_MS = 1_000_000_000_000


class Layout(StrEnum):
    """How near each other two operations work."""

    DISJOINT = "disjoint"
    SAME_PARTITION = "same partition"
    SAME_FILE = "same file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where one operation works.

    Attributes:
        who: told apart in the values of new rows.
        partition: the one partition.
        low, high: the range of ids that its predicate names.
        row: the one row of the file that is in the range.
        kept: the file's other row.
        new: an id in the range that the table has not; what is appended or inserted.
        file: label of the only file whose statistics meet the range.
        region: labels of two neighbours, for what puts files together.
    """

    who: str
    partition: str
    low: int
    high: int
    row: int
    kept: int
    new: int
    file: str
    region: tuple[str, str]

    @property
    def value(self) -> str:
        """What is in column `v` of new and changed rows."""
        return f"by {self.who}"

    @property
    def predicate(self) -> str:
        """The partition and the range."""
        return f"p = '{self.partition}' AND id >= {self.low} AND id <= {self.high}"


_IN_A = {"partition": "p0", "new": 3, "file": "A1", "region": ("A1", "A2")}
_TARGETS: dict[Layout, Target] = {
    Layout.DISJOINT: Target(
        who="winner", partition="p1", low=1, high=2, row=1, kept=3, new=2, file="C1", region=("C1", "C2")
    ),
    Layout.SAME_PARTITION: Target(
        who="winner", partition="p0", low=10, high=11, row=10, kept=12, new=11, file="B1", region=("B1", "B2")
    ),
    Layout.SAME_FILE: Target(who="winner", low=3, high=4, row=4, kept=2, **_IN_A),  # type: ignore[arg-type]
}
LOSER_TARGET = Target(who="loser", low=2, high=3, row=2, kept=4, **_IN_A)  # type: ignore[arg-type]


def targets(layout: Layout) -> tuple[Target, Target]:
    """Where the loser and the winner work."""
    return LOSER_TARGET, _TARGETS[layout]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A finished table to fork cells from."""

    store: MemoryStore
    version: int
    state: TableState
    restored: TableState
    paths: dict[str, str] = field(hash=False)


class Handle:
    """An open table that stays at its snapshot however stale, as a slow writer's does."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.store = snapshot.store
        self.snapshot = snapshot
        self.verified_at_ms = snapshot.clock.now_ms()

    def adopt_newest(self) -> None:
        return None

    def adopt(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def new_run(self, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES) -> Run:
        return Run(clock=self.snapshot.clock, commit=commit_properties)


def rows(*ids: int, partition: str, value: str = "start") -> pa.Table:
    """Rows of the table."""
    columns = {"id": pa.array(ids, pa.int64()), "p": [partition] * len(ids), "v": [value] * len(ids)}
    return pa.table(columns)


@cache
def template(level: IsolationLevel) -> Template:
    """The table, at an isolation level."""
    store = MemoryStore()
    schema = StructType(
        (
            StructField(name="id", data_type=LONG, nullable=False),
            StructField(name="p", data_type=STRING),
            StructField(name="v", data_type=STRING),
        )
    )
    properties = {"delta.isolationLevel": level.value, OWNER: "a team"}
    create_table(store, schema=schema, partition_by=["p"], configuration=properties)
    add_constraint(Snapshot.load(store), CHECK, "id > 0")

    def put(*tables: pa.Table, **options: str) -> None:
        handle = Handle(Snapshot.load(store))
        write_deltalake(handle, pa.concat_tables(tables), max_rows_per_file=2, **options)  # type: ignore[arg-type]

    put(rows(2, 4, 6, 8, partition="p0"), rows(1, 3, 5, 7, partition="p1"), mode="append")
    put(rows(10, 12, 14, 16, partition="p0"), mode="append")
    put(rows(90, partition="p2"), mode="append")
    restored = TableState.of(Snapshot.load(store))
    put(rows(92, partition="p2"), mode="overwrite", predicate="p = 'p2'")
    store.put(ORPHAN, b"nothing that anyone reads", modified_ms=_LONG_AGO_MS)
    snapshot = Snapshot.load(store)
    return Template(
        store=store,
        version=snapshot.version,
        state=TableState.of(snapshot),
        restored=restored,
        paths=_labelled(snapshot),
    )


def _labelled(snapshot: Snapshot) -> dict[str, str]:
    """The path of each labelled file, found by the statistics."""
    paths: dict[str, str] = {}
    for add in add_actions(snapshot.files.to_table(), data_change=True):
        for label, (low, _) in FILE_ROWS.items():
            if f'"minValues":{{"id":{low},' in (add.stats or ""):
                paths[label] = add.path
    assert set(paths) == ALL_FILES, f"the table is not laid out as meant: {sorted(paths)}"
    return paths
