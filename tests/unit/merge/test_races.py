"""A merge and another writer on one file with deletion vectors: both commit unless they meet in a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConcurrentModificationError
from delta_core.merge import MergeRequest, merge_rows
from delta_core.merge.clauses import MergeAction, MergeClause, MergeClauses
from delta_core.run import Run
from tests.concurrency.matrix.operation import Interruption

Winner = Callable[[DeltaTable], object]

_INSERT = MergeClause(action=MergeAction.INSERT_ALL)
_SET = {"v": "concat(target.v, '!')"}
KINDS = {
    "inserts": MergeClauses(not_matched=(_INSERT,)),
    "changes some": MergeClauses(
        matched=(MergeClause(action=MergeAction.UPDATE, condition="target.id = 0", values=_SET),),
        not_matched=(_INSERT,),
    ),
    "changes all": MergeClauses(
        matched=(MergeClause(action=MergeAction.UPDATE, values=_SET),), not_matched=(_INSERT,)
    ),
}


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{number}" for number in ids]})


def _merged(uri: Path, kind: str, winner: Winner) -> list[str]:
    """The values after a merge of the rows 0, 8 and 20, between whose reading and commit another one wins."""
    configuration = {
        "delta.enableDeletionVectors": "true",
        "delta.isolationLevel": "Serializable",
    }
    table = DeltaTable.create(uri, _rows(0).schema, configuration=configuration)
    for first in (0, 5):
        write_deltalake(table, _rows(*range(first, first + 5)), mode="append")
    table.delete("id = 4")
    hook = Interruption(action=lambda: winner(DeltaTable(uri)))
    merge_rows(
        table.snapshot,
        _rows(0, 8, 20),
        MergeRequest(on="target.id = source.id", clauses=KINDS[kind]),
        run=Run(observer=hook),
    )
    assert hook.done
    found: list[str] = DeltaTable(uri).to_pyarrow_table().column("v").to_pylist()
    return sorted(found)


def _other_merge(table: DeltaTable) -> Any:
    return table.merge(_rows(1, 9, 19), "target.id = source.id").when_matched_update_all().execute()


def _compaction_and_deletion(table: DeltaTable) -> None:
    table.optimize.compact()
    table.delete("id = 8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "winner",
    [
        lambda table: table.delete("id = 1"),
        lambda table: table.update({"v": "'u'"}, "id IN (1, 9)"),
        lambda table: table.optimize.compact(),
        _other_merge,
    ],
    ids=["delete", "update", "compact", "merge"],
)
def test_different_rows_do_not_conflict(tmp_path: Path, kind: str, winner: Winner) -> None:
    raced = _merged(tmp_path / "raced", kind, winner)
    alone = tmp_path / "alone"
    _merged(alone, kind, lambda table: None)
    winner(DeltaTable(alone))
    assert raced == sorted(DeltaTable(alone).to_pyarrow_table().column("v").to_pylist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "winner",
    [
        lambda table: table.delete("id = 8"),
        lambda table: table.update({"v": "'u'"}, "id = 8"),
        lambda table: write_deltalake(table, _rows(20), mode="append"),
        _compaction_and_deletion,
    ],
    ids=["delete", "update", "append", "compact and delete"],
)
def test_one_row_of_both_conflicts(tmp_path: Path, kind: str, winner: Winner) -> None:
    if kind != "inserts" and winner is _compaction_and_deletion:
        # It looks for its rows again, finds that row 8 is gone, and inserts it.
        assert "v8" in _merged(tmp_path, kind, winner)
        return
    with pytest.raises(ConcurrentModificationError):
        _merged(tmp_path, kind, winner)


@pytest.mark.parametrize("by_source", [False, True], ids=["matched", "not matched by source"])
def test_a_row_that_a_winner_deleted_first_is_not_counted(tmp_path: Path, by_source: bool) -> None:
    """Both delete the row 0; the merge deletes the row 8, too."""
    configuration = {"delta.enableDeletionVectors": "true"}
    table = DeltaTable.create(tmp_path, _rows(0).schema, configuration=configuration)
    write_deltalake(table, _rows(*range(10)), mode="append")
    hook = Interruption(action=lambda: DeltaTable(tmp_path).delete("id = 0"))
    delete = MergeClause(action=MergeAction.DELETE)
    clauses = MergeClauses(not_matched_by_source=(delete,)) if by_source else MergeClauses(matched=(delete,))
    source = _rows(1, 2, 3, 4, 5, 6, 7, 9) if by_source else _rows(0, 8)
    result = merge_rows(
        table.snapshot,
        source,
        MergeRequest(on="target.id = source.id", clauses=clauses),
        run=Run(observer=hook),
    )
    assert hook.done
    assert result["num_target_rows_deleted"] == 1
    metrics = DeltaTable(tmp_path).history(1)[0].commit_info.operation_metrics
    kind = "NotMatchedBySource" if by_source else "Matched"
    assert (metrics["numTargetRowsDeleted"], metrics[f"numTargetRows{kind}Deleted"]) == ("1", "1")
    assert DeltaTable(tmp_path).count() == 8
