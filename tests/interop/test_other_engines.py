"""Every version of what we write reads the same in deltalake and DuckDB, some in delta-spark too."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import DeltaTable, write_deltalake
from tests.support.delta_spark import by_delta_spark
from tests.support.rows import canonical_rows
from tests.support.soak import drawn


def _days(*days: int) -> pa.Array:
    return pa.array([datetime.date(2013, 1, day) for day in days], pa.date32())


def _instants(*seconds: int) -> pa.Array:
    values = [datetime.datetime(2013, 1, 1, 12, 0, second, 123456, datetime.UTC) for second in seconds]
    return pa.array(values, pa.timestamp("us", "UTC"))


def every_type(uri: str) -> None:
    """Each primitive and nested type, with nulls and values at their limits."""
    days = [datetime.date(1970, 1, 1), datetime.date(2999, 12, 31), None, datetime.date(2013, 6, 1)]
    first, second, last = _instants(1, 2, 59).to_pylist()
    zero = decimal.Decimal(0)
    data = pa.table(
        {
            "id": pa.array([1, 2, 3, None], pa.int64()),
            "small": pa.array([-(2**15), 2**15 - 1, None, 0], pa.int16()),
            "tiny": pa.array([-128, 127, None, 0], pa.int8()),
            "whole": pa.array([-(2**31), 2**31 - 1, None, 0], pa.int32()),
            "single": pa.array([1.5, None, float("nan"), -0.0], pa.float32()),
            "double": pa.array([1e308, float("inf"), float("nan"), None], pa.float64()),
            "amount": pa.array(
                [decimal.Decimal("1.10"), None, decimal.Decimal("-99999.99"), zero], pa.decimal128(7, 2)
            ),
            "large": pa.array(
                [decimal.Decimal(10) ** 30, None, decimal.Decimal(-1), zero], pa.decimal128(38, 0)
            ),
            "text": pa.array(["plain", "", "nötig ✓", None]),
            "raw": pa.array([b"\x00\xff", b"", None, b"x"], pa.binary()),
            "flag": pa.array([True, False, None, True]),
            "day": pa.array(days),
            "instant": pa.array([first, second, None, last], pa.timestamp("us", "UTC")),
            "pair": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 4, "b": ""}]),
            "items": pa.array([[1, 2], [], None, [None, 3]], pa.list_(pa.int32())),
        }
    )
    write_deltalake(uri, data, mode="append")
    write_deltalake(uri, data.slice(0, 2), mode="append")


def awkward_partitions(uri: str) -> None:
    """Partition values that need escaping, in directories and in the log."""
    data = pa.table(
        {
            "value": pa.array(range(8), pa.int64()),
            "place": ["New York", "a/b", "50%", "x=y", "ü ß", None, "quote'd", "a:b#c?"],
            "day": _days(1, 2, 3, 4, 5, 6, 7, 8),
        }
    )
    write_deltalake(uri, data, mode="append", partition_by=["place", "day"])
    write_deltalake(uri, data.slice(2, 4), mode="append")
    write_deltalake(uri, data.slice(0, 1), mode="overwrite", predicate="place = 'New York'")


def replaced_and_evolved(uri: str) -> None:
    """Overwrites in whole and in part, and a column added on the way."""
    base = pa.table({"month": pa.array([1, 1, 2, 3], pa.int32()), "delay": [1.0, None, 3.0, 4.0]})
    february = pa.table({"month": pa.array([2], pa.int32()), "delay": [9.0]})
    wider = pa.table({"month": pa.array([4], pa.int32()), "delay": [5.0], "carrier": ["UA"]})
    write_deltalake(uri, base, mode="append")
    write_deltalake(uri, february, mode="overwrite", predicate="month = 2")
    write_deltalake(uri, wider, mode="append", schema_mode="merge")
    write_deltalake(uri, wider, mode="overwrite")


def maintained(uri: str) -> None:
    """Past a checkpoint, compacted, restored and appended to again."""

    def day(number: int, *values: int) -> pa.Table:
        days = pa.array([number] * len(values), pa.int32())
        return pa.table({"day": days, "value": pa.array(values, pa.int64())})

    for number in range(12):
        write_deltalake(uri, day(number, number * 10, number * 10 + 1, number * 10 + 2), mode="append")
    table = DeltaTable(uri)
    table.optimize.compact()
    table.create_checkpoint()
    DeltaTable(uri).restore(5)
    write_deltalake(uri, day(99, 1), mode="append")


SHAPES: list[Callable[[str], None]] = [every_type, awkward_partitions, replaced_and_evolved, maintained]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One table of each shape."""
    folder = tmp_path_factory.mktemp("interop")
    for shape in SHAPES:
        shape(str(folder / shape.__name__))
    return {shape.__name__: folder / shape.__name__ for shape in SHAPES}


def _versions(uri: Path) -> range:
    return range(DeltaTable(str(uri)).version() + 1)


def _ours(uri: Path, version: int) -> list[str]:
    return canonical_rows(DeltaTable(str(uri), version=version).to_pyarrow_table())


@pytest.mark.parametrize("shape", [shape.__name__ for shape in SHAPES])
def test_deltalake_reads_the_same_rows(tables: dict[str, Path], shape: str) -> None:
    uri = tables[shape]
    assert PeerTable(str(uri)).version() == DeltaTable(str(uri)).version() > 0
    for version in _versions(uri):
        theirs = PeerTable(str(uri), version=version).to_pyarrow_table()
        assert canonical_rows(theirs) == _ours(uri, version), f"{shape} at version {version}"


@pytest.mark.parametrize("shape", [shape.__name__ for shape in SHAPES])
def test_duckdb_reads_the_same_rows(tables: dict[str, Path], shape: str) -> None:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"LOAD '{extension}'")
        for version in _versions(tables[shape]):
            answer = connection.execute(
                "SELECT * FROM delta_scan(?, version => ?)", [str(tables[shape]), version]
            )
            theirs = canonical_rows(answer.to_arrow_table())
            assert theirs == _ours(tables[shape], version), f"{shape} at version {version}"


@pytest.mark.soak  # test_written_tables.py draws tables that delta-spark reads
@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_reads_the_same_rows(tables: dict[str, Path], tmp_path: Path) -> None:
    requests = [
        {"uri": str(uri), "version": version}
        for uri in tables.values()
        for version in sorted({*drawn(_versions(uri), usual=2), _versions(uri)[-1]})
    ]
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    by_delta_spark("reader", str(tmp_path / "requests.json"), str(tmp_path))
    assert len(requests) >= 2 * len(tables)
    for index, request in enumerate(requests):
        theirs = pq.read_table(tmp_path / f"{index}.parquet")
        ours = _ours(Path(request["uri"]), request["version"])
        assert canonical_rows(theirs) == ours, request
