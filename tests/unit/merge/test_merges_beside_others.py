"""MERGE in Arrow beside commits of others: it ends as after them, or fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConcurrentModificationError
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.merge.clauses import MergeAction, MergeClause, MergeClauses
from delta_core.merge.statement import MergeRequest, merge_rows
from delta_core.run import Run
from delta_core.transaction.observer import CommitPhase

DELETES = MergeClause(action=MergeAction.DELETE)
INSERTS = MergeClause(action=MergeAction.INSERT_ALL)


class Meanwhile:
    """Runs another's commit when a transaction is ready for the first time."""

    def __init__(self, winner: Callable[[], object]) -> None:
        self._winners = [winner]

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is CommitPhase.PREPARED and self._winners:
            self._winners.pop()()


def merge_beside(
    root: Path, winner: Callable[[Path], object], clauses: MergeClauses, level: str = "Serializable"
) -> None:
    """Merge the rows 3, 4 and 11 while another writer commits."""
    table = pa.table({"id": pa.array(range(10), pa.int64()), "v": pa.array(range(10), pa.int64())})
    properties = {"delta.enableDeletionVectors": "true", "delta.isolationLevel": level}
    DeltaTable.create(root, schema=table.schema, configuration=properties)
    write_deltalake(root, table, mode="append")
    merge_rows(
        DeltaTable(root).snapshot,
        pa.table({"id": [3, 4, 11], "v": [30, 40, 110]}),
        MergeRequest(on="target.id = source.id", clauses=clauses),
        run=Run(observer=Meanwhile(lambda: winner(root))),
    )


def delete_3(root: Path) -> None:
    DeltaTable(root).delete("id = 3")


def compact(root: Path) -> None:
    write_deltalake(root, pa.table({"id": [50], "v": [50]}), mode="append")
    snapshot = DeltaTable(root).snapshot
    assert apply_rewrite(snapshot, plan_compaction(snapshot), run=Run()).version is not None


def ids(root: Path) -> list[int]:
    return sorted(DeltaTable(root).to_pyarrow_table()["id"].to_pylist())


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_a_row_that_another_deleted_would_have_been_inserted(tmp_path: Path, level: str) -> None:
    with pytest.raises(ConcurrentModificationError):
        merge_beside(tmp_path, delete_3, MergeClauses(matched=(DELETES,), not_matched=(INSERTS,)), level)
    assert ids(tmp_path) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_merge_that_only_deletes_follows_a_delete_of_the_same_row(tmp_path: Path) -> None:
    merge_beside(tmp_path, delete_3, MergeClauses(matched=(DELETES,)))
    assert ids(tmp_path) == [0, 1, 2, 5, 6, 7, 8, 9]


def test_a_merge_with_unchanged_matches_finds_its_rows_after_a_compaction(tmp_path: Path) -> None:
    some = MergeClause(action=MergeAction.DELETE, condition="source.id = 3")
    clauses = MergeClauses(matched=(some,), not_matched=(INSERTS,))
    merge_beside(tmp_path, compact, clauses)
    assert ids(tmp_path) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 11, 50]


def test_the_deletion_of_an_unchanged_match_still_conflicts(tmp_path: Path) -> None:
    some = MergeClause(action=MergeAction.DELETE, condition="source.id = 4")
    with pytest.raises(ConcurrentModificationError):
        merge_beside(tmp_path, delete_3, MergeClauses(matched=(some,), not_matched=(INSERTS,)))
    assert ids(tmp_path) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
