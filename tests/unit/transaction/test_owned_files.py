"""What is deleted when a commit does not happen: what its operation wrote, and nothing that is live."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.actions import AddCdcFile, AddFile, DeletionVectorDescriptor
from delta_core.data.row_files import write_data_files
from delta_core.dml.commit_files import commit_new_files
from delta_core.errors import CommitError, ConcurrentModificationError
from delta_core.scan.scan import Scan
from delta_core.schema.arrow import from_arrow
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import Committed, Conflict, Rejected, Unknown, unknown_outcome
from delta_core.transaction.file_actions import add_actions
from delta_core.transaction.owned_files import OwnedFiles

REJECTED = Rejected(error=CommitError("no"))
CONFLICT = Conflict(winner=1, rule="delete_delete", error=CommitError("no"))
DELETION_VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^", offset=1, size_in_bytes=40, cardinality=1
)
DELETION_VECTOR_FILE = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def add(path: str, **changes: Any) -> AddFile:
    return AddFile(path=path, size_bytes=1, modification_time_ms=0, **changes)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    return LocalLogStore(tmp_path)


def written(store: LocalLogStore, data: pa.Table) -> list[AddFile]:
    return write_data_files(store, data, schema=from_arrow(data.schema), partition_columns=())


def data_files(store: LocalLogStore) -> set[str]:
    return {info.path for info in store.walk() if info.path.endswith(".parquet")}


@pytest.mark.parametrize("reads_table", [True, False])
def test_a_live_file_that_is_added_again_survives(store: LocalLogStore, reads_table: bool) -> None:
    """By a conflict, or by a refusal before anything is sent."""
    options: dict[str, Any] = {
        "writer_kind": WriterKind.ARROW_ROWS,
        "mode": "append",
        "schema": from_arrow(rows().schema),
    }
    commit_new_files(None, store, adds=written(store, rows(1, 2)), **options)
    before = Snapshot.load(store)
    (live,) = add_actions(before.files.to_table(), data_change=False)
    new = written(store, rows(3))
    commit_new_files(before, store, adds=written(store, rows(4)), **options)
    kept = data_files(store) - {new[0].path}
    again = replace(live, stats=None)
    adds = [again, *new] if reads_table else [again, *new, *new]
    with pytest.raises(ConcurrentModificationError if reads_table else CommitError):
        commit_new_files(
            before,
            store,
            adds=adds,
            reads_table=reads_table,
            owned=OwnedFiles(store=store).with_data(new),
            **options,
        )
    assert data_files(store) == kept
    assert sorted(Scan(Snapshot.load(store)).to_table().column("id").to_pylist()) == [1, 2, 4]


@pytest.mark.parametrize("result", [REJECTED, CONFLICT])
def test_data_changes_and_vectors_go(store: LocalLogStore, result: Rejected | Conflict) -> None:
    for path in ("p=a b/x.parquet", "_change_data/c.parquet", DELETION_VECTOR_FILE, "live.parquet"):
        store.put(path, b"x")
    owned = (
        OwnedFiles(store=store)
        .with_data([add("p=a%20b/x.parquet")])
        .with_changes([AddCdcFile(path="_change_data/c.parquet", size_bytes=1)])
        .with_deletion_vectors([DELETION_VECTOR, replace(DELETION_VECTOR, offset=50)])
    )
    assert owned.discard(result) == 3
    assert {info.path for info in store.walk()} == {"live.parquet"}


@pytest.mark.parametrize(
    "result",
    [
        Committed(version=1),
        Rejected(error=CommitError("lost"), files_referenced=True),
        Unknown(
            version=1,
            txn_id="t",
            error=unknown_outcome("?", cause="", txn_id="t", version=1, has_key=False),
        ),
    ],
)
def test_nothing_goes_that_the_log_may_name(store: LocalLogStore, result: Any) -> None:
    store.put("x.parquet", b"x")
    store.put(DELETION_VECTOR_FILE, b"x")
    owned = OwnedFiles(store=store).with_data([add("x.parquet")]).with_deletion_vectors([DELETION_VECTOR])
    assert owned.discard(result) == 0
    assert {info.path for info in store.walk()} == {"x.parquet", DELETION_VECTOR_FILE}


def test_inline_and_broken_vectors_have_no_file(store: LocalLogStore) -> None:
    inline = replace(DELETION_VECTOR, storage_type="i", offset=None)
    broken = replace(DELETION_VECTOR, path_or_inline_dv="short")
    outside = replace(DELETION_VECTOR, storage_type="p", path_or_inline_dv="/elsewhere/v.bin")
    assert OwnedFiles(store=store).with_deletion_vectors([inline, broken, outside]).discard(REJECTED) == 0


@pytest.mark.parametrize("known", [{"deletion_vector": DELETION_VECTOR}, {"base_row_id": 0}])
def test_what_cannot_have_been_written_just_now_is_refused(
    store: LocalLogStore, known: dict[str, Any]
) -> None:
    with pytest.raises(CommitError, match="was not written by this operation"):
        OwnedFiles(store=store).with_data([add("x"), add("y", **known)])
