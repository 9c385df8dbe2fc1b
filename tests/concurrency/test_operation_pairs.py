"""Pairs of real operations, one committing while the other is about to: what may pass, passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.dml.write import write_deltalake
from delta_core.errors import ConcurrentModificationError
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.run import Run
from delta_core.schema.types import STRING, StructField
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table import DeltaTable
from delta_core.transaction.observer import CommitPhase, TransactionObserver


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [f"p{i % 2}" for i in ids]})


@dataclass
class Once:
    """Runs something when the commit has been prepared and nothing was sent yet."""

    action: Callable[[], object]
    done: bool = field(default=False)

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is CommitPhase.PREPARED and not self.done:
            self.done = True
            self.action()


class Silent:
    def on_phase(self, phase: CommitPhase, version: int) -> None:
        return None


Operation = Callable[[Path, TransactionObserver], object]


def compact(root: Path, observer: TransactionObserver) -> object:
    snapshot = Snapshot.load(LocalLogStore(root))
    return apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(observer=observer))


def replacing(predicate: str, *ids: int) -> Operation:
    return lambda root, observer: write_deltalake(
        root, rows(*ids), mode="overwrite", predicate=predicate, observer=observer
    )


OPERATIONS: dict[str, Operation] = {
    "append even": lambda root, observer: write_deltalake(root, rows(10), mode="append", observer=observer),
    "append odd": lambda root, observer: write_deltalake(root, rows(11), mode="append", observer=observer),
    "overwrite": lambda root, observer: write_deltalake(root, rows(20), mode="overwrite", observer=observer),
    "replace even": replacing("p = 'p0'", 30),
    "replace odd": replacing("p = 'p1'", 31),
    "replace from 6": replacing("id >= 6", 42),
    "compact": compact,
    "add column": lambda root, observer: DeltaTable(root).alter.add_columns(
        StructField(name="more", data_type=STRING)
    ),
    "set retention": lambda root, observer: DeltaTable(root).alter.set_properties(
        {"delta.logRetentionDuration": "interval 60 days"}
    ),
}

START = frozenset(range(1, 9))
EVEN, ODD = frozenset({2, 4, 6, 8}), frozenset({1, 3, 5, 7})
CONFLICT = None

# For each first operation: what is in the table afterwards, or CONFLICT, by the operation that won.
EXPECTED: dict[str, dict[str, frozenset[int] | None]] = {
    "append even": {
        "append odd": START | {10, 11},
        "overwrite": frozenset({10, 20}),
        "replace even": ODD | {10, 30},
        "replace odd": EVEN | {10, 31},
        "replace from 6": frozenset({1, 2, 3, 4, 5, 10, 42}),
        "compact": START | {10},
        "add column": CONFLICT,
        "set retention": START | {10},
    },
    "overwrite": {
        # A blind append may be ordered after the overwrite that did not see it.
        "append odd": frozenset({11, 20}),
        "replace even": CONFLICT,
        "replace odd": CONFLICT,
        "replace from 6": CONFLICT,
        "compact": CONFLICT,
        "add column": CONFLICT,
        "set retention": CONFLICT,
    },
    "replace even": {
        "append even": ODD | {10, 30},
        "append odd": ODD | {11, 30},
        "overwrite": CONFLICT,
        "replace odd": frozenset({30, 31}),
        "replace from 6": CONFLICT,
        "compact": CONFLICT,
        "add column": CONFLICT,
    },
    "replace from 6": {
        "append even": frozenset({1, 2, 3, 4, 5, 10, 42}),
        "overwrite": CONFLICT,
        "replace even": CONFLICT,
        "replace odd": CONFLICT,
        "compact": CONFLICT,
    },
    "compact": {
        "append even": START | {10},
        "append odd": START | {11},
        "overwrite": CONFLICT,
        "replace even": CONFLICT,
        "replace odd": CONFLICT,
        "replace from 6": CONFLICT,
        "add column": CONFLICT,
    },
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two files in each of two partitions; the second pair holds the ids from 5 on."""
    write_deltalake(tmp_path, rows(1, 2, 3, 4), partition_by=["p"])
    write_deltalake(tmp_path, rows(5, 6, 7, 8), mode="append")
    return tmp_path


@pytest.mark.parametrize(
    ("first", "winner"), [(first, winner) for first, winners in EXPECTED.items() for winner in winners]
)
def test_pair(root: Path, first: str, winner: str) -> None:
    race = Once(lambda: OPERATIONS[winner](root, Silent()))
    expected = EXPECTED[first][winner]
    if expected is CONFLICT:
        with pytest.raises(ConcurrentModificationError, match="version 2"):
            OPERATIONS[first](root, race)
    else:
        OPERATIONS[first](root, race)
    assert race.done
    table = DeltaTable(root)
    assert table.version() == (2 if expected is CONFLICT else 3)
    found = sorted(table.to_pyarrow_table(columns=["id"]).column("id").to_pylist())
    if expected is not CONFLICT:
        assert found == sorted(expected)
        newest = history(LocalLogStore(root), limit=1)[0].commit_info
        assert newest.read_version == 2, "the provenance names the version that was rebased on"
    assert_no_orphans(root)


def assert_no_orphans(root: Path) -> None:
    """Whoever lost deleted what it had written."""
    named: set[str] = set()
    for version in range(DeltaTable(root).version() + 1):
        files = Snapshot.load(LocalLogStore(root), version=version).files.to_table(columns=["path"])
        named.update(files.column("path").to_pylist())
    found = {str(path.relative_to(root)) for path in root.rglob("*.parquet")}
    assert {path for path in found if not path.startswith("_delta_log")} == named
