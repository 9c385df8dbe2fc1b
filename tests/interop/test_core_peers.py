"""Tables that delta_core writes, read by deltalake and DuckDB at every version."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_core.dml.write import write_deltalake
from delta_core.scan.scan import Scan
from delta_core.schema.types import STRING, StructField
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table import DeltaTable

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with its Delta extension, loaded from the installed package and not from the network."""
    folder = Path(duckdb_extension_delta.__file__).parent
    extension = next(folder.rglob("delta.duckdb_extension"))
    connection = duckdb.connect()
    connection.load_extension(str(extension))
    return connection


def ordered(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: repr(sorted(row.items(), key=lambda item: item[0])))


def as_utc(rows: Rows) -> Rows:
    """Engines name the zone UTC differently."""
    return [
        {
            name: value.astimezone(dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo else value
            for name, value in row.items()
        }
        for row in rows
    ]


def ours(root: Path, version: int) -> Rows:
    return ordered(as_utc(Scan(Snapshot.load(LocalLogStore(root), version=version)).to_table().to_pylist()))


def deltalakes(root: Path, version: int) -> Rows:
    return ordered(as_utc(PeerTable(root, version=version).to_pyarrow_table().to_pylist()))


def ducks(duck: duckdb.DuckDBPyConnection, root: Path, version: int) -> Rows:
    scan = duck.execute("SELECT * FROM delta_scan(?, version := ?::UBIGINT)", [str(root), version])
    return ordered(as_utc(scan.to_arrow_table().to_pylist()))


def assert_equal_everywhere(duck: duckdb.DuckDBPyConnection, root: Path, versions: int) -> None:
    assert [entry.version for entry in history(LocalLogStore(root))] == list(range(versions))[::-1]
    for version in range(versions):
        expected = ours(root, version)
        assert deltalakes(root, version) == expected, f"deltalake, version {version}"
        assert ducks(duck, root, version) == expected, f"DuckDB, version {version}"


def flights(month: int, *, extra: bool = False) -> pa.Table:
    columns: dict[str, Any] = {
        "month": pa.array([month] * 3, pa.int32()),
        "flight": pa.array([month * 10 + i for i in range(3)], pa.int64()),
        "carrier": pa.array(["UA", None, "a/b c%é"], pa.string()),
        "delay": pa.array([1.5, float("inf"), None], pa.float64()),
        "fare": pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(9, 2)),
        "day": pa.array([dt.date(2013, month, 1), None, dt.date(1969, 12, 31)], pa.date32()),
        "at": pa.array(
            [dt.datetime(2013, month, 1, 5, 6, 7, 891, dt.UTC), None, dt.datetime(1900, 1, 1, tzinfo=dt.UTC)],
            pa.timestamp("us", "UTC"),
        ),
        "late": pa.array([True, False, None], pa.bool_()),
        "raw": pa.array([b"\x00\xff", None, b""], pa.binary()),
    }
    if extra:
        columns["note"] = pa.array(["x", "y", None], pa.string())
    return pa.table(columns)


def test_life_of_a_table(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    write_deltalake(
        tmp_path, flights(1), partition_by=["month"], configuration={"delta.checkpointInterval": "4"}
    )
    write_deltalake(tmp_path, flights(2), mode="append")
    write_deltalake(tmp_path, flights(3, extra=True), mode="append", schema_mode="merge")
    write_deltalake(tmp_path, flights(2), mode="overwrite", predicate="month = 2")
    write_deltalake(
        tmp_path, flights(1).slice(0, 1), mode="overwrite", predicate="month = 1 AND flight <= 11"
    )
    table = DeltaTable(tmp_path)
    table.restore(1)
    write_deltalake(table, flights(1), mode="append")
    table.alter.add_columns(StructField(name="remark", data_type=STRING))
    table.optimize.compact()
    write_deltalake(table, flights(5).select(["month", "flight"]), mode="overwrite", schema_mode="overwrite")
    assert table.version() == 9
    assert_equal_everywhere(duck, tmp_path, 10)
    assert len(ours(tmp_path, 4)) == 8
    assert ours(tmp_path, 5) == ours(tmp_path, 1)
    assert ours(tmp_path, 7) == ours(tmp_path, 8)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("text", pa.array(["", " ", "a=b", "a/b", "ä ö%20", None, "2013-01-01"], pa.string())),
        ("long", pa.array([-(2**63), 0, 2**63 - 1, None], pa.int64())),
        ("date", pa.array([dt.date(1, 1, 1), dt.date(2024, 2, 29), None], pa.date32())),
        (
            "timestamp",
            pa.array(
                [
                    dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC),
                    None,
                    dt.datetime(1969, 12, 31, tzinfo=dt.UTC),
                ],
                pa.timestamp("us", "UTC"),
            ),
        ),
        ("bool", pa.array([True, False, None], pa.bool_())),
        ("decimal", pa.array([Decimal("1.10"), None, Decimal("0.01")], pa.decimal128(10, 2))),
        ("double", pa.array([0.1, -2.5e300, None], pa.float64())),
    ],
)
def test_partition_values_of_every_type(
    duck: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, values: pa.Array
) -> None:
    data = pa.table({"n": pa.array(range(len(values)), pa.int64()), name: values})
    write_deltalake(tmp_path, data, partition_by=[name])
    expected = ordered(as_utc(data.to_pylist()))
    if name == "text":
        # The empty string is the null of partition values.
        expected = ordered([{**row, "text": row["text"] or None} for row in expected])
    assert ours(tmp_path, 0) == expected
    assert deltalakes(tmp_path, 0) == expected
    assert ducks(duck, tmp_path, 0) == expected


def test_nested_rows(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    data = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "tags": pa.array([["a", None], None], pa.list_(pa.string())),
            "place": pa.array(
                [{"x": 1, "y": None}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])
            ),
        }
    )
    write_deltalake(tmp_path, data)
    write_deltalake(tmp_path, data.slice(1), mode="overwrite", predicate="id = 2")
    assert_equal_everywhere(duck, tmp_path, 2)
    assert ours(tmp_path, 1) == ordered(data.to_pylist())


def test_writers_take_turns(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """deltalake appends to what we wrote, we to what it wrote, from a handle that does not know of it."""
    write_deltalake(tmp_path, flights(1), partition_by=["month"])
    handle = DeltaTable(tmp_path)
    for month in range(2, 6):
        peer_write(tmp_path, flights(month), mode="append")
        committed = write_deltalake(handle, flights(month + 5), mode="append")
        assert committed is not None
        assert committed.version == (month - 1) * 2
    assert_equal_everywhere(duck, tmp_path, 9)
    assert len(ours(tmp_path, 8)) == 27


def test_peer_reads_our_statistics(tmp_path: Path) -> None:
    """deltalake prunes by the statistics that we wrote and finds what it should."""
    for month in range(1, 5):
        write_deltalake(tmp_path, flights(month), mode="append")
    peer = PeerTable(tmp_path)
    found = peer.to_pyarrow_table(filters=[("flight", ">=", 30)]).column("flight").to_pylist()
    assert sorted(found) == [30, 31, 32, 40, 41, 42]
    actions = pa.table(peer.get_add_actions(flatten=True))
    assert sorted(actions.column("min.flight").to_pylist()) == [10, 20, 30, 40]
    assert actions.column("num_records").to_pylist() == [3, 3, 3, 3]


def test_peer_reads_our_provenance(tmp_path: Path) -> None:
    write_deltalake(tmp_path, flights(1))
    write_deltalake(tmp_path, flights(2), mode="overwrite")
    newest = PeerTable(tmp_path).history(1)[0]
    assert (newest["operation"], newest["readVersion"]) == ("WRITE", 0)
    assert newest["operationParameters"]["mode"] == "Overwrite"
    assert newest["engineInfo"].startswith("deltaward/")
