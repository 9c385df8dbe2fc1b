"""Files written through the chain of steps, read by DuckDB's extension (delta-kernel)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest

from tests.support.planned_tables import PlannedTable, mapped, struct

ROWS = pa.table(
    {
        "day of flight": ["mon", "tue", None, "mon"],
        "id": pa.array([0, 1, 2, 3], pa.int64()),
        "plane": pa.array(
            [{"a": "N0", "b": 0}, None, {"a": None, "b": 20}, {"a": "N3", "b": 30}],
            pa.struct([("a", pa.string()), ("b", pa.int64())]),
        ),
        "legs": pa.array(
            [[{"to": "FRA"}, None], [], None, [{"to": None}]], pa.list_(pa.struct([("to", pa.string())]))
        ),
    }
)
FIELDS = (
    mapped("day of flight", "string", 1, "col-p"),
    mapped("id", "long", 2, "col-i"),
    mapped("plane", struct(mapped("a", "string", 4, "b"), mapped("b", "long", 5, "a")), 3, "col-n"),
    mapped(
        "legs",
        {"type": "array", "elementType": struct(mapped("to", "string", 7, "col-o")), "containsNull": True},
        6,
        "col-l",
    ),
)


@pytest.fixture(scope="module")
def duck():
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        yield connection


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("extra", [[], ["materializePartitionColumns"]])
def test_mapped_columns(tmp_path, duck, mode, extra):
    table = PlannedTable(
        tmp_path,
        *FIELDS,
        features=["columnMapping", *extra],
        configuration={"delta.columnMapping.mode": mode},
        partition_columns=["day of flight"],
    )
    table.write(ROWS)
    query = 'SELECT "day of flight", id, plane, legs FROM delta_scan(?) {} ORDER BY id'
    found = duck.execute(query.format(""), [str(tmp_path)]).to_arrow_table()
    assert found.to_pylist() == ROWS.to_pylist()
    # Statistics by physical name let it skip, and must not skip too much.
    found = duck.execute(query.format("WHERE plane.b = 30"), [str(tmp_path)]).to_arrow_table()
    assert found.column("id").to_pylist() == [3]
