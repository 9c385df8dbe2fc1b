"""Files written through the chain of steps, read by DuckDB's extension (delta-kernel) and by delta-spark."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.data.steps.identity import with_high_water_marks
from delta_core.schema.json import schema_to_json
from tests.support.delta_spark import by_delta_spark
from tests.support.planned_tables import PlannedTable, column, mapped, struct

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


MODES = [(mode, extra) for mode in ("name", "id") for extra in ((), ("materializePartitionColumns",))]


def mapped_table(root: Path, mode: str, extra: tuple[str, ...]) -> PlannedTable:
    table = PlannedTable(
        root,
        *FIELDS,
        features=["columnMapping", *extra],
        configuration={"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "7"},
        partition_columns=["day of flight"],
    )
    table.write(ROWS)
    return table


@pytest.mark.parametrize(("mode", "extra"), MODES)
def test_mapped_columns(tmp_path, duck, mode, extra):
    mapped_table(tmp_path, mode, extra)
    query = 'SELECT "day of flight", id, plane, legs FROM delta_scan(?) {} ORDER BY id'
    found = duck.execute(query.format(""), [str(tmp_path)]).to_arrow_table()
    assert found.to_pylist() == ROWS.to_pylist()
    # Statistics by physical name let it skip, and must not skip too much.
    found = duck.execute(query.format("WHERE plane.b = 30"), [str(tmp_path)]).to_arrow_table()
    assert found.column("id").to_pylist() == [3]


def filled_table(root: Path) -> PlannedTable:
    identity = {"start": 5, "step": 10, "allowExplicitInsert": False}
    table = PlannedTable(
        root,
        column("t", "timestamp"),
        column("day", "date") | {"metadata": {"delta.generationExpression": "CAST(t AS DATE)"}},
        column("i", "long") | {"metadata": {f"delta.identity.{k}": v for k, v in identity.items()}},
        column("d", "string", CURRENT_DEFAULT="'x'"),
        features=["generatedColumns", "identityColumns", "allowColumnDefaults"],
        partition_columns=["day"],
    )
    written = table.write(pa.table({"t": [dt.datetime(2020, 1, day, 23, tzinfo=dt.UTC) for day in (1, 2)]}))
    schema = with_high_water_marks(table.plan.schema, written.high_water_marks)
    table.log.commit(replace(table.metadata, schema_string=schema_to_json(schema)))
    return table


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_reads_the_same_rows(tmp_path: Path) -> None:
    tables = []
    for number, (mode, extra) in enumerate(MODES):
        (tmp_path / f"m{number}").mkdir()
        tables.append((mapped_table(tmp_path / f"m{number}", mode, extra), "id"))
    (tmp_path / "filled").mkdir()
    tables.append((filled_table(tmp_path / "filled"), "i"))
    requests = [{"uri": str(table.log.root), "version": table.log.next_version - 1} for table, _ in tables]
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    by_delta_spark("reader", str(tmp_path / "requests.json"), str(tmp_path))
    for index, (table, key) in enumerate(tables):
        theirs = pq.read_table(tmp_path / f"{index}.parquet").to_pylist()
        assert sorted(theirs, key=lambda row: row[key]) == sorted(table.rows(), key=lambda row: row[key])
        assert theirs
