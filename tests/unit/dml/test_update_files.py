"""What an UPDATE reads of the files that it changes, and how it lays out those that it writes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_core import DeltaTable, write_deltalake
from delta_core.data.write_plan import WritePlan
from delta_core.dml.assignments import Assignments
from delta_core.errors import MissingDataFileError
from tests.unit.dml.test_delete import as_table, deltalake_rows, duckdb_rows, make, of_kind, our_rows, rows_of


def test_rewritten_rows_stay_in_their_order(tmp_path: Path) -> None:
    """Files are laid out by what rows are skipped for; a statement must not undo that."""
    columns = {
        "id": pa.array(range(1000), pa.int64()),
        "s": pa.array([{"a": i, "b": str(i)} for i in range(1000)]),
        "l": pa.array([[i] * (i % 3) for i in range(1000)], pa.list_(pa.int64())),
        "m": pa.array([{"k": i} for i in range(1000)], pa.map_(pa.string(), pa.int64())),
    }
    write_deltalake(tmp_path, pa.table(columns))
    before = PeerTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    DeltaTable(tmp_path).update(
        {"s.a": "s.a + 1", "id": "id + 5000"},
        "id % 7 = 0 OR id > 990",
        new_values={"l": [7, 7], "m": {"x": 1}},
    )
    (path,) = [add["path"] for add in of_kind(tmp_path, "add")]
    after = pq.read_table(tmp_path / path).to_pylist()
    assert after == [
        {
            "id": row["id"] + 5000,
            "s": {"a": row["id"] + 1, "b": row["s"]["b"]},
            "l": [7, 7],
            "m": [("x", 1)],
        }
        if row["id"] % 7 == 0 or row["id"] > 990
        else row
        for row in before
    ]


@pytest.mark.parametrize(
    ("updates", "unread"),
    [
        ({"v": "1"}, {"v"}),
        ({"v": "id + 1"}, {"v"}),
        ({"v": "v + 1"}, set()),
        ({"v": "id", "id": "v"}, set()),
        ({"v": "1", "p": "CASE WHEN p = 'a' THEN 'c' ELSE p END"}, {"v"}),
        ({"id": "0", "v": "0", "p": "'z'"}, {"id", "v", "p"}),
    ],
)
def test_old_values_are_read_where_a_new_one_depends_on_them(
    tmp_path: Path, updates: dict[str, str], unread: set[str]
) -> None:
    table = make(tmp_path, rows_of(60), dvs=True)
    plan = WritePlan.of(table.snapshot.protocol, table.snapshot.metadata)
    assert Assignments(updates, None, plan=plan, now_us=0).unread == unread
    peer_write(str(tmp_path / "theirs"), as_table(rows_of(60)))
    PeerTable(str(tmp_path / "theirs")).update(updates=updates, predicate="id % 2 = 0 AND v IS NOT NULL")
    table.update(updates, "id % 2 = 0 AND v IS NOT NULL")
    assert our_rows(tmp_path) == deltalake_rows(tmp_path / "theirs") == duckdb_rows(tmp_path)


def test_a_file_that_is_missing_among_many_stops_the_statement(tmp_path: Path) -> None:
    for start in range(6):
        write_deltalake(tmp_path, pa.table({"id": pa.array([start, start + 1])}), mode="append")
    (path,) = [add["path"] for add in of_kind(tmp_path, "add")]
    (tmp_path / path).unlink()
    kept = sorted(tmp_path.glob("*.parquet"))
    with pytest.raises(MissingDataFileError, match=path):
        DeltaTable(tmp_path).update({"id": "0"}, "id % 2 = 1")
    assert sorted(tmp_path.glob("*.parquet")) == kept
    assert DeltaTable(tmp_path).version() == 5
