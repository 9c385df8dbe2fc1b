"""A compaction or purge beside deletions of rows in its files: both commit, and no deleted row comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.deletion_vectors.file_update import update_deletion_vector
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.dml.delete import delete_rows
from delta_core.dml.update import update_rows
from delta_core.errors import (
    ConcurrentDeleteDeleteError,
    ConcurrentModificationError,
    MaxCommitAttemptsError,
)
from delta_core.maintenance.apply_rewrite import RewriteResult, apply_rewrite
from delta_core.maintenance.clustering.plan import plan_z_order
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.maintenance.purge.plan import plan_purge
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.file_actions import add_actions
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.transaction import Transaction

COUNT = 40
FILES = 3
ALL = range(COUNT * FILES)
PROPERTIES = {"delta.enableDeletionVectors": "true"}


def make(root: Path, **properties: str) -> None:
    """A table of `FILES` files with `COUNT` rows each; `id` and `v` number the rows."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    DeltaTable.create(root, schema=schema, configuration={**PROPERTIES, **properties})
    for number in range(FILES):
        ids = pa.array(range(number * COUNT, (number + 1) * COUNT), pa.int64())
        write_deltalake(root, pa.table({"id": ids, "v": ids}), mode="append")


class Meanwhile:
    """Runs others' commits when a transaction is ready, and again each time it has lost."""

    def __init__(self, *winners: Callable[[], object]) -> None:
        self._winners = list(winners)

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase in (CommitPhase.PREPARED, CommitPhase.REBASED) and self._winners:
            self._winners.pop(0)()


def delete(root: Path, predicate: str) -> Callable[[], object]:
    return lambda: DeltaTable(root).delete(predicate)


def update(root: Path, predicate: str) -> Callable[[], object]:
    return lambda: DeltaTable(root).update({"v": "-id"}, predicate)


def compact(root: Path, *winners: Callable[[], object]) -> RewriteResult:
    snapshot = DeltaTable(root).snapshot
    return apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(observer=Meanwhile(*winners)))


def purge(root: Path, *winners: Callable[[], object]) -> RewriteResult:
    snapshot = DeltaTable(root).snapshot
    return apply_rewrite(snapshot, plan_purge(snapshot), run=Run(observer=Meanwhile(*winners)))


def z_order(root: Path, *winners: Callable[[], object]) -> RewriteResult:
    snapshot = DeltaTable(root).snapshot
    plan = plan_z_order(snapshot, ["v"], full=True)
    return apply_rewrite(snapshot, plan, run=Run(observer=Meanwhile(*winners)))


def rows(root: Path) -> dict[int, int]:
    """The values by id, as we read them and as deltalake does."""
    table = DeltaTable(root).to_pyarrow_table()
    ours = dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))
    assert len(ours) == table.num_rows
    found = pa.table(QueryBuilder().register("t", PeerTable(str(root))).execute("select id, v from t"))
    assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == ours
    return ours


def live_files(root: Path) -> set[str]:
    actions = pa.table(DeltaTable(root).get_add_actions())
    return set(actions["path"].to_pylist())


def files_on_disk(root: Path) -> int:
    return len(list(root.rglob("*.parquet")) + list(root.rglob("deletion_vector_*.bin")))


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_rows_deleted_meanwhile_stay_deleted(tmp_path: Path, level: str) -> None:
    make(tmp_path, **{"delta.isolationLevel": level})
    done = compact(tmp_path, delete(tmp_path, "id % 10 = 3"))
    assert done.version == FILES + 2
    assert rows(tmp_path) == {number: number for number in ALL if number % 10 != 3}
    assert len(live_files(tmp_path)) == 1
    assert DeltaTable(tmp_path).history(1)[0].commit_info.operation == "OPTIMIZE"


def test_the_new_file_of_an_update_stays_beside_the_compacted_one(tmp_path: Path) -> None:
    make(tmp_path, **{"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"})
    ids = DeltaTable(tmp_path).to_pyarrow_table(row_ids=True).sort_by("id")
    assert compact(tmp_path, update(tmp_path, "id < 5")).version == FILES + 2
    assert rows(tmp_path) == {number: -number if number < 5 else number for number in ALL}
    assert len(live_files(tmp_path)) == 2
    after = DeltaTable(tmp_path).to_pyarrow_table(row_ids=True).sort_by("id")
    assert after["_row_id"].to_pylist() == ids["_row_id"].to_pylist()
    changes = DeltaTable(tmp_path).load_cdf(starting_version=FILES + 2).read_all()
    assert changes.num_rows == 0


def test_several_winners_in_turn(tmp_path: Path) -> None:
    make(tmp_path)
    DeltaTable(tmp_path).delete("id % 7 = 0")
    winners = [delete(tmp_path, f"id % 7 = {part}") for part in (1, 2, 3)]
    compact(tmp_path, *winners, delete(tmp_path, "id >= 80"))
    assert rows(tmp_path) == {number: number for number in range(80) if number % 7 > 3}
    (file,) = live_files(tmp_path)
    assert (tmp_path / file).exists()


def test_a_purge_keeps_what_is_deleted_meanwhile(tmp_path: Path) -> None:
    make(tmp_path)
    DeltaTable(tmp_path).delete("id % 2 = 0")
    purge(tmp_path, delete(tmp_path, "id % 2 = 1 AND id > 20 AND id <> 41"))
    assert sorted(rows(tmp_path)) == [*range(1, 21, 2), 41]


def test_a_file_whose_rows_all_go_is_not_added(tmp_path: Path) -> None:
    make(tmp_path)
    before = files_on_disk(tmp_path)
    compact(tmp_path, delete(tmp_path, "id < 40"), delete(tmp_path, "id < 80"))
    assert sorted(rows(tmp_path)) == [*range(80, 120)]
    assert files_on_disk(tmp_path) == before + 1 + 1, "one file and one deletion vector are new"


def test_a_winner_that_copies_rows_to_its_own_files(tmp_path: Path) -> None:
    make(tmp_path)

    def copying() -> None:
        """Another engine need not use deletion vectors, although the table does."""
        PeerTable(str(tmp_path)).update(updates={"v": "-id"}, predicate="id < 10")

    compact(tmp_path, copying)
    assert rows(tmp_path) == {number: -number if number < 10 else number for number in ALL}


def test_another_compaction_still_conflicts(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ConcurrentDeleteDeleteError):
        compact(tmp_path, lambda: compact(tmp_path))
    assert rows(tmp_path) == {number: number for number in ALL}


def test_restored_rows_still_conflict(tmp_path: Path) -> None:
    make(tmp_path)
    DeltaTable(tmp_path).delete("id = 1")
    before = files_on_disk(tmp_path)
    with pytest.raises(ConcurrentDeleteDeleteError):
        compact(tmp_path, lambda: DeltaTable(tmp_path).restore(FILES))
    assert rows(tmp_path) == {number: number for number in ALL}
    assert files_on_disk(tmp_path) == before


def test_a_compaction_is_empty_after_an_overwrite(tmp_path: Path) -> None:
    make(tmp_path)
    one = pa.table({"id": [7], "v": [7]})
    done = compact(tmp_path, lambda: write_deltalake(tmp_path, one, mode="overwrite"))
    assert done.version == FILES + 2
    assert rows(tmp_path) == {7: 7}
    assert files_on_disk(tmp_path) == FILES + 1, "what the compaction wrote is gone"


def test_without_deletion_vectors_the_files_decide(tmp_path: Path) -> None:
    make(tmp_path, **{"delta.enableDeletionVectors": "false"})
    with pytest.raises(ConcurrentModificationError):
        compact(tmp_path, delete(tmp_path, "id = 3"))
    assert sorted(rows(tmp_path)) == [number for number in ALL if number != 3]


def test_a_z_order_finds_deleted_rows_by_their_ids(tmp_path: Path) -> None:
    make(tmp_path, **{"delta.enableRowTracking": "true"})
    update(tmp_path, "id % 3 = 0")()
    ids = DeltaTable(tmp_path).to_pyarrow_table(row_ids=True).sort_by("id")["_row_id"].to_pylist()
    done = z_order(tmp_path, delete(tmp_path, "id % 10 = 3"), delete(tmp_path, "id >= 110"))
    assert done.version is not None
    left = [number for number in range(110) if number % 10 != 3]
    assert rows(tmp_path) == {number: -number if number % 3 == 0 else number for number in left}
    after = DeltaTable(tmp_path).to_pyarrow_table(row_ids=True).sort_by("id")["_row_id"].to_pylist()
    assert after == [ids[number] for number in left]


def test_a_z_order_without_row_ids_finds_rows_by_their_values(tmp_path: Path) -> None:
    make(tmp_path)
    update(tmp_path, "id % 3 = 0")()
    done = z_order(tmp_path, delete(tmp_path, "id % 10 = 3"), update(tmp_path, "id = 5 OR id >= 110"))
    assert done.version is not None
    left = [number for number in ALL if number % 10 != 3]
    changed = {number for number in ALL if number % 3 == 0 or number == 5 or number >= 110}
    assert rows(tmp_path) == {number: -number if number in changed else number for number in left}


ODD_VALUES = pa.table(
    {
        "p": pa.array([["a", None][number % 2] for number in range(24)], pa.string()),
        "k": pa.array([number % 3 for number in range(24)], pa.int32()),
        "f": pa.array([[0.0, -0.0, float("nan"), None][number % 4] for number in range(24)], pa.float64()),
        "s": pa.array(
            [[{"a": 1, "b": [1.5]}, {"a": None, "b": []}, None][number % 3] for number in range(24)],
            pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))]),
        ),
        "d": pa.array([[None, b"x"][number % 2] for number in range(24)], pa.binary()),
    }
)


def delete_places(root: Path, *places: int) -> None:
    """Delete rows by their places in the first file of the log, whatever their values are."""
    store = LocalLogStore(root)
    snapshot = Snapshot.load(store)
    file = next(iter(add_actions(snapshot.files.to_table(), data_change=True)))
    known = file.deletion_vector
    before = [] if known is None else read_deletion_vector(store, known, num_rows=12)
    (dv,) = write_deletion_vectors(store, [np.union1d(before, places).astype(np.int64)]).descriptors
    update = update_deletion_vector(file, dv, deletion_timestamp_ms=0)
    transaction = Transaction.begin(snapshot, operation="DELETE").read_files([file.path])
    assert update.remove is not None
    assert isinstance(transaction.add(update.remove, update.add).commit(), Committed)


def test_rows_with_equal_values_are_interchangeable(tmp_path: Path) -> None:
    """Nested and partition values, NaN, both zeros, nulls, and each row twice, of which one is deleted."""
    table = DeltaTable.create(
        tmp_path, schema=ODD_VALUES.schema, partition_by=["p"], configuration=PROPERTIES
    )
    for _ in range(2):
        write_deltalake(tmp_path, ODD_VALUES, mode="append")
    done = []

    def winner() -> None:
        delete_places(tmp_path, *range(1 + len(done), 12, 4))
        done.append(DeltaTable(tmp_path).to_pyarrow_table())

    snapshot = table.snapshot.refresh()
    plan = plan_z_order(snapshot, ["k"], full=True)
    observer = Meanwhile(winner, delete(tmp_path, "k = 2 AND f IS NULL"), winner)
    assert apply_rewrite(snapshot, plan, run=Run(observer=observer)).version is not None
    assert len(done) == 2
    found = sorted(map(repr, DeltaTable(tmp_path).to_pyarrow_table().to_pylist()))
    assert found == sorted(map(repr, done[1].to_pylist()))
    assert 30 < len(found) < 45


@pytest.mark.parametrize("change_feed", ["false", "true"])
@pytest.mark.parametrize("statement", ["delete", "update"])
def test_a_statement_finds_its_rows_where_a_compaction_put_them(
    tmp_path: Path, statement: str, change_feed: str
) -> None:
    make(tmp_path, **{"delta.enableChangeDataFeed": change_feed})
    snapshot = DeltaTable(tmp_path).snapshot
    run = Run(observer=Meanwhile(lambda: compact(tmp_path), delete(tmp_path, "id = 50")))
    if statement == "delete":
        result = delete_rows(snapshot, "id % 10 = 3", run=run)
        expected = {number: number for number in ALL if number % 10 != 3}
    else:
        result = update_rows(snapshot, {"v": "-id"}, "id % 10 = 3", run=run)
        expected = {number: -number if number % 10 == 3 else number for number in ALL}
    del expected[50]
    assert result.version == FILES + 3
    assert rows(tmp_path) == expected
    assert next(iter(result.metrics.values())) == len([number for number in ALL if number % 10 == 3])


def test_a_statement_that_may_try_once_does_not_follow_the_compaction(tmp_path: Path) -> None:
    make(tmp_path)
    before = files_on_disk(tmp_path)
    run = Run(observer=Meanwhile(lambda: compact(tmp_path)), commit=CommitProperties(max_attempts=1))
    with pytest.raises(MaxCommitAttemptsError, match="number of attempts was 1"):
        delete_rows(DeltaTable(tmp_path).snapshot, "id = 3", run=run)
    assert rows(tmp_path) == {number: number for number in ALL}
    assert files_on_disk(tmp_path) == before + 1, "only the compaction's file is new"


def test_rows_that_both_change_still_conflict(tmp_path: Path) -> None:
    make(tmp_path)
    run = Run(observer=Meanwhile(lambda: compact(tmp_path), update(tmp_path, "id = 3")))
    with pytest.raises(ConcurrentModificationError):
        update_rows(DeltaTable(tmp_path).snapshot, {"v": "id + 1000"}, "id < 5", run=run)
    assert rows(tmp_path) == {number: -number if number == 3 else number for number in ALL}


@settings(max_examples=15, deadline=None)
@given(
    before=st.sets(st.sampled_from(ALL), max_size=30),
    winners=st.lists(st.sets(st.sampled_from(ALL), min_size=1, max_size=50), min_size=1, max_size=3),
    updates=st.booleans(),
)
def test_no_order_of_commits_brings_a_row_back(
    tmp_path_factory: pytest.TempPathFactory, before: set[int], winners: list[set[int]], updates: bool
) -> None:
    root = tmp_path_factory.mktemp("t")
    make(root)
    expected = {number: number for number in ALL}

    def chosen(numbers: set[int]) -> str:
        return f"id IN ({', '.join(map(str, sorted(numbers)))})"

    if before:
        DeltaTable(root).delete(chosen(before))
        expected = {number: value for number, value in expected.items() if number not in before}
    for index, numbers in enumerate(winners):
        if updates and index % 2:
            expected |= {number: -number for number in numbers if number in expected}
        else:
            expected = {number: value for number, value in expected.items() if number not in numbers}
    commits = [
        (update if updates and index % 2 else delete)(root, chosen(numbers))
        for index, numbers in enumerate(winners)
    ]
    compact(root, *commits)
    assert rows(root) == expected
