"""MERGE in Arrow beside commits of others: it ends as after them, or fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConcurrentModificationError
from delta_core.merge.clauses import MergeAction, MergeClause, MergeClauses
from delta_core.merge.statement import MergeRequest, merge_rows
from delta_core.run import Run
from delta_core.transaction.observer import CommitPhase

DELETES = MergeClause(action=MergeAction.DELETE)
INSERTS = MergeClause(action=MergeAction.INSERT_ALL)


class Meanwhile:
    """Runs another's commit when a transaction is ready."""

    def __init__(self, winner: Callable[[], object]) -> None:
        self._winner = winner

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is CommitPhase.PREPARED:
            self._winner()


def merge_beside_a_delete(root: Path, clauses: MergeClauses, level: str) -> None:
    """Merge the rows 3 and 4, while another writer deletes row 3."""
    table = pa.table({"id": pa.array(range(10), pa.int64()), "v": pa.array(range(10), pa.int64())})
    properties = {"delta.enableDeletionVectors": "true", "delta.isolationLevel": level}
    DeltaTable.create(root, schema=table.schema, configuration=properties)
    write_deltalake(root, table, mode="append")
    merge_rows(
        DeltaTable(root).snapshot,
        pa.table({"id": [3, 4], "v": [30, 40]}),
        MergeRequest(on="target.id = source.id", clauses=clauses),
        run=Run(observer=Meanwhile(lambda: DeltaTable(root).delete("id = 3"))),
    )


def ids(root: Path) -> list[int]:
    return sorted(DeltaTable(root).to_pyarrow_table()["id"].to_pylist())


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_a_row_that_another_deleted_would_have_been_inserted(tmp_path: Path, level: str) -> None:
    with pytest.raises(ConcurrentModificationError):
        merge_beside_a_delete(tmp_path, MergeClauses(matched=(DELETES,), not_matched=(INSERTS,)), level)
    assert ids(tmp_path) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_merge_that_only_deletes_follows_a_delete_of_the_same_row(tmp_path: Path) -> None:
    merge_beside_a_delete(tmp_path, MergeClauses(matched=(DELETES,)), "Serializable")
    assert ids(tmp_path) == [0, 1, 2, 5, 6, 7, 8, 9]
