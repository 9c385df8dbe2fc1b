"""Whatever the store answers, a write is in the table exactly once, or not at all and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.actions import SetTransaction
from delta_core.clock import ManualClock
from delta_core.dml.write import write_deltalake
from delta_core.errors import CommitRejectedError, CommitStateUnknownError
from delta_core.observability import (
    COMMIT_RECOVERED_TOTAL,
    COMMIT_SPURIOUS_EXISTS_TOTAL,
    COMMIT_UNKNOWN_TOTAL,
    METRICS,
)
from delta_core.scan.scan import Scan
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.committer import READ_BACK_TRIES
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.table_handle import StoreTable

START_MS = 1_700_000_000_000

LANDING = [
    PutFault.DROP_REQUEST,
    PutFault.DROP_RESPONSE,
    PutFault.EXISTS_BUT_MINE,
    PutFault.CONFLICT_409,
    PutFault.LANDS_LATE,
]


def rows(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "p": pa.array([v % 2 for v in values], pa.int64())})


OPERATIONS: dict[str, tuple[dict[str, Any], pa.Table, list[int]]] = {
    "append": ({"mode": "append"}, rows(5, 6), [1, 2, 3, 4, 5, 6]),
    "overwrite": ({"mode": "overwrite"}, rows(5, 6), [5, 6]),
    "replaceWhere by partition": ({"mode": "overwrite", "predicate": "p = 0"}, rows(6), [1, 3, 6]),
    "replaceWhere in files": ({"mode": "overwrite", "predicate": "id >= 4"}, rows(7, 8), [1, 2, 3, 7, 8]),
    "schema merge": ({"mode": "append", "schema_mode": "merge"}, rows(5), [1, 2, 3, 4, 5]),
}


class Table:
    """A table of four rows in two partitions over a faulty store."""

    def __init__(self, root: Path) -> None:
        self.clock = ManualClock(START_MS)
        write_deltalake(root, rows(1, 2, 3, 4), partition_by=["p"], clock=self.clock)
        self.store = FaultyStore(LocalLogStore(root, clock=self.clock))
        self.handle = StoreTable(self.store, clock=self.clock)

    def ids(self) -> list[int]:
        table = Scan(Snapshot.load(self.store.inner), columns=["id"]).to_table()
        return sorted(table.column("id").to_pylist())

    def orphans(self) -> set[str]:
        """Data files that no version names."""
        named: set[str] = set()
        for version in range(len(history(self.store.inner))):
            files = Snapshot.load(self.store.inner, version=version).files
            named.update(files.to_table(columns=["path"]).column("path").to_pylist())
        found = {info.path for info in self.store.inner.walk() if info.path.endswith(".parquet")}
        return {path for path in found if not path.startswith("_delta_log/")} - named


@pytest.fixture
def table(tmp_path: Path) -> Table:
    METRICS.reset()
    return Table(tmp_path)


@pytest.mark.parametrize("fault", LANDING)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_write_lands_exactly_once(table: Table, operation: str, fault: PutFault) -> None:
    arguments, data, expected = OPERATIONS[operation]
    table.store.puts = [fault]
    committed = write_deltalake(table.handle, data, clock=table.clock, **arguments)
    assert committed is not None
    assert committed.version == 1
    assert table.ids() == expected
    assert [entry.version for entry in history(table.store.inner)] == [1, 0]
    assert table.orphans() == set()
    lost_answer = fault not in (PutFault.DROP_REQUEST, PutFault.CONFLICT_409)
    assert committed.recovered is lost_answer
    assert METRICS.value(COMMIT_RECOVERED_TOTAL) == int(lost_answer)
    assert METRICS.value(COMMIT_SPURIOUS_EXISTS_TOTAL) == int(fault is PutFault.CONFLICT_409)


@pytest.mark.parametrize("fault", LANDING)
def test_ambiguous_answer_while_another_writer_commits(table: Table, fault: PutFault) -> None:
    """The other writer takes the version while this one does not know what became of its own write."""

    def meanwhile(path: str) -> None:
        if not table.store.put_paths:
            write_deltalake(StoreTable(table.store.inner), rows(9), mode="append")

    table.store.before_put = meanwhile
    table.store.puts = [fault]
    committed = write_deltalake(table.handle, rows(5), mode="append", clock=table.clock)
    assert committed is not None
    assert committed.version == 2
    assert table.ids() == [1, 2, 3, 4, 5, 9]
    assert [entry.version for entry in history(table.store.inner)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("prepare", "landed"),
    [
        (PutFault.DROP_RESPONSE, True),
        (PutFault.DROP_REQUEST, False),
    ],
)
def test_unknown_outcome_keeps_the_files(table: Table, prepare: PutFault, landed: bool) -> None:
    table.store.puts = [prepare]
    table.store.failing_reads = READ_BACK_TRIES
    with pytest.raises(CommitStateUnknownError, match="txnId"):
        write_deltalake(table.handle, rows(5), mode="append", clock=table.clock)
    assert METRICS.value(COMMIT_UNKNOWN_TOTAL) == 1
    assert table.store.deleted == []
    assert table.ids() == ([1, 2, 3, 4, 5] if landed else [1, 2, 3, 4])


def test_rerun_after_an_unknown_outcome_applies_once(table: Table) -> None:
    """With an idempotency key the operator simply runs the job again."""
    key = SetTransaction(app_id="load", version=1)
    table.store.puts = [PutFault.DROP_RESPONSE]
    table.store.failing_reads = READ_BACK_TRIES
    with pytest.raises(CommitStateUnknownError):
        write_deltalake(table.handle, rows(5), mode="append", txn=key, clock=table.clock)
    again = write_deltalake(StoreTable(table.store), rows(5), mode="append", txn=key)
    assert again is not None
    assert again.already_applied
    assert table.ids() == [1, 2, 3, 4, 5]


def test_rejected_write_leaves_nothing_behind(table: Table) -> None:
    table.store.puts = [PutFault.DENIED]
    with pytest.raises(CommitRejectedError):
        write_deltalake(table.handle, rows(5, 6), mode="append", clock=table.clock)
    assert table.orphans() == set()
    assert len(table.store.deleted) == 2


def test_conflicting_write_leaves_nothing_behind(table: Table) -> None:
    def meanwhile(path: str) -> None:
        if not table.store.put_paths:
            write_deltalake(StoreTable(table.store.inner), rows(9), mode="overwrite")

    table.store.before_put = meanwhile
    with pytest.raises(Exception, match="version 1") as raised:
        write_deltalake(table.handle, rows(5, 6), mode="overwrite", clock=table.clock)
    assert getattr(raised.value, "conflict", False)
    assert table.orphans() == set()
    assert table.ids() == [9]


def test_crash_before_the_commit_changes_nothing(table: Table) -> None:
    def crash(path: str) -> None:
        raise KeyboardInterrupt

    table.store.before_put = crash
    with pytest.raises(KeyboardInterrupt):
        write_deltalake(table.handle, rows(5), mode="append", clock=table.clock)
    assert table.ids() == [1, 2, 3, 4]
    assert len(table.orphans()) == 1, "who does not know what happened deletes nothing"
