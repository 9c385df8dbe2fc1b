"""Deletions at the same time of rows of one file: what is live afterwards, and what stays a conflict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import AddCdcFile, AddFile, RemoveFile
from delta_core.actions.json_codec import decode_commit
from delta_core.data.row_files import write_data_files
from delta_core.deletion_vectors.file_update import update_deletion_vector
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.dml.delete import DeleteResult, delete_rows
from delta_core.errors import ConcurrentModificationError
from delta_core.log.log_path import commit_path
from delta_core.run import Run
from delta_core.schema.arrow import from_arrow
from delta_core.schema.json import schema_to_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_result import Conflict, raise_for_result
from delta_core.transaction.deletion_vector_merger import DeletionVectorMerger
from delta_core.transaction.file_actions import add_actions
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.transaction import Transaction
from tests.support.log_builder import LogBuilder, metadata, protocol

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
COUNT = 400
LEVELS = ("Serializable", "WriteSerializable")
DELETION_VECTORS = frozenset({"deletionVectors"})


def make(root: Path, *, level: str = "Serializable", files: int = 1, count: int = COUNT) -> DeltaTable:
    """A table with deletion vectors; each file holds `count` rows, numbered through."""
    root.mkdir(parents=True, exist_ok=True)
    LogBuilder(root).commit(
        protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=DELETION_VECTORS,
            writer_features=DELETION_VECTORS,
        ),
        metadata(
            schema_string=schema_to_json(from_arrow(SCHEMA)),
            partition_columns=(),
            configuration={"delta.enableDeletionVectors": "true", "delta.isolationLevel": level},
        ),
    )
    table = DeltaTable(root)
    for number in range(files):
        write_deltalake(table, rows(range(number * count, (number + 1) * count)), mode="append")
    return table


def rows(ids: Sequence[int] | range) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{i}" for i in ids]}, schema=SCHEMA)


def ids(root: Path) -> list[int]:
    """As we read them, and deltalake does."""
    ours = sorted(DeltaTable(root).to_pyarrow_table().column("id").to_pylist())
    found = QueryBuilder().register("t", PeerTable(str(root))).execute("select id from t")
    assert sorted(pa.table(found).column("id").to_pylist()) == ours
    return ours


class Meanwhile:
    """Runs others' commits when a transaction is ready, and perhaps again each time it has lost."""

    def __init__(self, *winners: Callable[[], object]) -> None:
        self._winners = list(winners)

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase in (CommitPhase.PREPARED, CommitPhase.REBASED) and self._winners:
            self._winners.pop(0)()


def delete(root: Path, predicate: str | None) -> Callable[[], DeleteResult]:
    return lambda: delete_rows(DeltaTable(root).snapshot, predicate)


def race(root: Path, predicate: str, *winners: Callable[[], object]) -> DeleteResult:
    """A deletion whose every attempt but the last is lost to another winner."""
    return delete_rows(DeltaTable(root).snapshot, predicate, run=Run(observer=Meanwhile(*winners)))


def deletion_vector_files(root: Path) -> set[str]:
    return {path.name for path in root.rglob("deletion_vector_*.bin")}


def named_deletion_vector_files(root: Path) -> set[str]:
    """The files that some version's vectors are in."""
    store = DeltaTable(root).store
    named = set()
    for version in range(DeltaTable(root).version() + 1):
        data = store.read(commit_path(version))
        dvs = [
            action.deletion_vector
            for action in decode_commit(data, path=commit_path(version))
            if isinstance(action, AddFile) and action.deletion_vector is not None
        ]
        owned = OwnedFiles(store=store).with_deletion_vectors(dvs)
        named |= {path.rpartition("/")[2] for _, path in owned._store_paths()}
    return named


def the_file(snapshot: Snapshot) -> AddFile:
    (file,) = add_actions(snapshot.files.to_table(), data_change=True)
    return file


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_both_are_deleted(tmp_path: Path, level: str) -> None:
    make(tmp_path, level=level)
    done = race(tmp_path, "id >= 100 AND id < 200", delete(tmp_path, "id >= 300"))
    assert done.version == 3
    assert done.metrics["num_deleted_rows"] == 100
    assert ids(tmp_path) == [*range(100), *range(200, 300)]
    file = the_file(DeltaTable(tmp_path).snapshot)
    assert file.deletion_vector is not None
    assert file.deletion_vector.cardinality == 200
    assert '"numRecords":400' in (file.stats or "")
    assert '"tightBounds":false' in (file.stats or "")
    positions = read_deletion_vector(DeltaTable(tmp_path).store, file.deletion_vector, num_rows=COUNT)
    assert positions.tolist() == [*range(100, 200), *range(300, 400)]


def test_every_version_removes_what_the_one_before_had(tmp_path: Path) -> None:
    """A path and its vector are live once: each remove names the vector that was there."""
    make(tmp_path)
    race(tmp_path, "id < 150", delete(tmp_path, "id >= 350"), delete(tmp_path, "id = 200"))
    store = DeltaTable(tmp_path).store
    live: dict[str, str | None] = {}
    for version in range(DeltaTable(tmp_path).version() + 1):
        actions = decode_commit(store.read(commit_path(version)), path=commit_path(version))
        for action in actions:
            if isinstance(action, RemoveFile):
                dv = action.deletion_vector
                assert live.pop(action.path) == (None if dv is None else dv.unique_id)
        for action in actions:
            if isinstance(action, AddFile):
                assert action.path not in live
                dv = action.deletion_vector
                live[action.path] = None if dv is None else dv.unique_id
    assert len(live) == 1
    assert ids(tmp_path) == [*range(150, 200), *range(201, 350)]


def test_several_winners_in_a_row_and_no_file_is_left_over(tmp_path: Path) -> None:
    make(tmp_path)
    winners = [delete(tmp_path, f"id % 20 = {rest}") for rest in range(4)]
    done = race(tmp_path, "id % 20 = 10 OR id = 1", *winners)
    # Row 1 was a winner's already.
    assert done.metrics["num_deleted_rows"] == 20
    assert done.committed is not None
    assert done.committed.operation_metrics["numDeletedRows"] == "20"
    assert ids(tmp_path) == [i for i in range(COUNT) if i % 20 not in (0, 1, 2, 3, 10)]
    assert deletion_vector_files(tmp_path) == named_deletion_vector_files(tmp_path)


def test_rows_that_a_winner_has_taken_all_are_not_taken_again(tmp_path: Path) -> None:
    make(tmp_path)
    done = race(tmp_path, "id < 100", delete(tmp_path, "id < 200"))
    assert done.version == 3
    assert done.metrics["num_deleted_rows"] == 0
    assert done.metrics["num_deletion_vectors_added"] == 0
    assert ids(tmp_path) == [*range(200, COUNT)]
    actions = decode_commit(DeltaTable(tmp_path).store.read(commit_path(3)), path=commit_path(3))
    assert not [action for action in actions if isinstance(action, AddFile | RemoveFile)]
    assert deletion_vector_files(tmp_path) == named_deletion_vector_files(tmp_path)


def test_a_file_that_loses_its_last_rows_is_removed(tmp_path: Path) -> None:
    make(tmp_path)
    done = race(tmp_path, "id < 200", delete(tmp_path, "id >= 200"))
    assert done.metrics["num_removed_files"] == 1
    assert done.metrics["num_deletion_vectors_added"] == 0
    assert ids(tmp_path) == []
    assert DeltaTable(tmp_path).snapshot.files.to_table().num_rows == 0


def test_a_whole_file_goes_with_the_vector_that_it_has_by_then(tmp_path: Path) -> None:
    make(tmp_path, files=2)
    done = race(tmp_path, f"id < {COUNT}", delete(tmp_path, "id < 200"))
    assert done.metrics["num_deleted_rows"] == 200
    assert ids(tmp_path) == [*range(COUNT, 2 * COUNT)]


def test_a_file_that_was_only_read_may_lose_rows(tmp_path: Path) -> None:
    make(tmp_path, files=2)
    # Its statistics do not rule the first file out; its rows do.
    delete(tmp_path, "id = 150")()
    done = race(tmp_path, f"id = 150 OR id = {COUNT + 1}", delete(tmp_path, "id < 100"))
    assert done.metrics["num_deleted_rows"] == 1
    gone = {150, COUNT + 1, *range(100)}
    assert ids(tmp_path) == [i for i in range(2 * COUNT) if i not in gone]


def test_other_files_of_the_deletion_keep_their_vectors(tmp_path: Path) -> None:
    """One file has the vectors of all, and only one of them is made anew."""
    make(tmp_path, files=2)
    race(tmp_path, "id % 4 = 0", delete(tmp_path, "id % 4 = 1 AND id < 400"))
    assert ids(tmp_path) == [i for i in range(800) if i % 4 and not (i % 4 == 1 and i < 400)]
    assert deletion_vector_files(tmp_path) == named_deletion_vector_files(tmp_path)
    assert len(deletion_vector_files(tmp_path)) == 3


@pytest.mark.parametrize(
    "winner",
    [
        lambda root: DeltaTable(root).restore(2),
        lambda root: write_deltalake(root, rows([7]), mode="overwrite"),
        lambda root: write_deltalake(root, rows([7]), mode="overwrite", predicate="id = 7"),
    ],
    ids=["restore", "overwrite", "replaceWhere"],
)
@pytest.mark.parametrize("level", LEVELS)
def test_rows_that_were_replaced_or_came_back_are_a_conflict(
    tmp_path: Path, level: str, winner: Callable[[Path], object]
) -> None:
    make(tmp_path, level=level, files=2)
    delete(tmp_path, "id = 5")()
    before = deletion_vector_files(tmp_path)
    with pytest.raises(ConcurrentModificationError):
        race(tmp_path, "id % 2 = 0", lambda: winner(tmp_path))
    assert deletion_vector_files(tmp_path) - named_deletion_vector_files(tmp_path) == set()
    assert before <= deletion_vector_files(tmp_path)


def test_what_was_written_for_attempts_that_were_lost_is_deleted(tmp_path: Path) -> None:
    """The first winner is followed, the second one not: nothing of either attempt is left."""
    make(tmp_path)
    with pytest.raises(ConcurrentModificationError):
        race(
            tmp_path,
            "id % 2 = 0",
            delete(tmp_path, "id % 10 = 1"),
            lambda: DeltaTable(tmp_path).restore(1),
        )
    assert deletion_vector_files(tmp_path) == named_deletion_vector_files(tmp_path)
    assert ids(tmp_path) == [*range(COUNT)]


@pytest.mark.parametrize("level", LEVELS)
def test_matching_rows_that_come_with_a_vector_are_a_conflict(tmp_path: Path, level: str) -> None:
    """The rules judge what a winner adds besides: an UPDATE, which takes rows and writes others."""
    make(tmp_path, level=level)
    with pytest.raises(ConcurrentModificationError, match="Rows were added"):
        race(tmp_path, "id < 100", lambda: update(tmp_path, [300], new=[50]))
    assert ids(tmp_path) == sorted([*range(300), *range(301, COUNT), 50])


def test_rows_that_come_with_a_vector_and_do_not_match_are_none(tmp_path: Path) -> None:
    make(tmp_path)
    done = race(tmp_path, "id < 100", lambda: update(tmp_path, [50, 300], new=[1000, 1001]))
    assert done.metrics["num_deleted_rows"] == 99
    assert ids(tmp_path) == [*range(100, 300), *range(301, COUNT), 1000, 1001]


def update(
    root: Path,
    positions: Sequence[int],
    *,
    new: Sequence[int],
    observer: Meanwhile | None = None,
    changes: Sequence[AddCdcFile] = (),
) -> object:
    """Rows of the one file go, and others come, as an UPDATE by vectors commits it."""
    table = DeltaTable(root)
    snapshot, store = table.snapshot, table.store
    file = the_file(snapshot)
    known = (
        []
        if file.deletion_vector is None
        else read_deletion_vector(store, file.deletion_vector, num_rows=COUNT).tolist()
    )
    dvs = write_deletion_vectors(store, [[*known, *positions]], inline_max_bytes=0)
    change = update_deletion_vector(file, dvs.descriptors[0], deletion_timestamp_ms=snapshot.clock.now_ms())
    resolver = DeletionVectorMerger(store)
    options = {} if observer is None else {"observer": observer}
    transaction = Transaction.begin(snapshot, operation="UPDATE", resolver=resolver, **options)  # type: ignore[arg-type]
    transaction.read_files([file.path]).add(change.remove, *changes)
    owned = OwnedFiles(store=store).with_deletion_vectors(dvs.descriptors)
    if change.add is not None:
        transaction.add(change.add)
    if new:
        written = write_data_files(store, rows(new), schema=snapshot.schema)
        owned = owned.with_data(written)
        transaction.add(*written)
    result = transaction.commit()
    resolver.discard(result, owned)
    return raise_for_result(result)


def test_an_update_of_rows_that_a_winner_took_is_a_conflict(tmp_path: Path) -> None:
    """They would come back."""
    make(tmp_path)
    with pytest.raises(ConcurrentModificationError):
        update(tmp_path, [50], new=[1000], observer=Meanwhile(delete(tmp_path, "id < 100")))
    assert ids(tmp_path) == [*range(100, COUNT)]
    assert deletion_vector_files(tmp_path) == named_deletion_vector_files(tmp_path)
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_an_update_of_other_rows_follows(tmp_path: Path) -> None:
    make(tmp_path)
    update(tmp_path, [350], new=[1000], observer=Meanwhile(delete(tmp_path, "id < 100")))
    assert ids(tmp_path) == [*range(100, 350), *range(351, COUNT), 1000]


def test_rows_are_not_reported_twice(tmp_path: Path) -> None:
    """A deletion that has written change data of its rows is a conflict where some are gone already."""
    cdc = AddCdcFile(path="_change_data/c.parquet", partition_values={}, size_bytes=1)
    make(tmp_path)
    with pytest.raises(ConcurrentModificationError):
        update(tmp_path, [50], new=[], changes=[cdc], observer=Meanwhile(delete(tmp_path, "id < 100")))
    update(tmp_path, [300], new=[], changes=[cdc], observer=Meanwhile(delete(tmp_path, "id > 390")))
    assert ids(tmp_path) == [*range(100, 300), *range(301, 391)]


def test_a_vector_that_cannot_be_read_settles_nothing(tmp_path: Path) -> None:
    make(tmp_path)

    def wins_and_loses_its_deletion_vector() -> None:
        delete(tmp_path, "id % 3 = 0")()
        for path in named_deletion_vector_files(tmp_path):
            next(tmp_path.rglob(path)).unlink()

    with pytest.raises(ConcurrentModificationError):
        race(tmp_path, "id % 3 = 1", wins_and_loses_its_deletion_vector)
    assert deletion_vector_files(tmp_path) == set()


def test_metadata_is_no_matter_of_rows(tmp_path: Path) -> None:
    make(tmp_path)
    snapshot = DeltaTable(tmp_path).snapshot
    file = the_file(snapshot)
    dvs = write_deletion_vectors(snapshot.store, [[1]])
    change = update_deletion_vector(file, dvs.descriptors[0], deletion_timestamp_ms=1)
    assert change.add is not None
    transaction = Transaction.begin(snapshot, operation="X", resolver=DeletionVectorMerger(snapshot.store))
    transaction.add(change.remove, change.add, snapshot.metadata).read_files([file.path])
    delete(tmp_path, "id = 5")()
    assert isinstance(transaction.commit(), Conflict)


@settings(max_examples=8)
@given(
    deletions=st.lists(
        st.tuples(st.integers(2, 9), st.integers(0, 8), st.integers(0, 60)), min_size=2, max_size=5
    ),
    level=st.sampled_from(LEVELS),
)
def test_any_deletions_at_once_leave_what_deletions_in_turn_leave(
    tmp_path_factory: pytest.TempPathFactory, deletions: list[tuple[int, int, int]], level: str
) -> None:
    root = tmp_path_factory.mktemp("t")
    make(root, level=level, files=2, count=30)
    # A file that a winner removes whole is a conflict, so one row of each stays.
    strings = [f"id % 30 <> 7 AND (id % {by} = {rest % by} OR id = {one})" for by, rest, one in deletions]
    snapshot = DeltaTable(root).snapshot
    race_all = Meanwhile(*(lambda text=text: delete_rows(snapshot, text) for text in strings[1:]))  # type: ignore[misc]
    delete_rows(snapshot, strings[0], run=Run(observer=race_all))

    def is_left(i: int) -> bool:
        return i % 30 == 7 or not any(i % by == rest % by or i == one for by, rest, one in deletions)

    assert sorted(DeltaTable(root).to_pyarrow_table().column("id").to_pylist()) == [
        i for i in range(60) if is_left(i)
    ]
    assert deletion_vector_files(root) == named_deletion_vector_files(root)
