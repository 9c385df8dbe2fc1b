"""The files of a source: all of them are read, and what their directories' names add stays what it is."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.test_load import load
from tests.support.hostile_sessions import set_so
from tests.support.soak import drawn
from tests.support.spark import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

FORMATS = ("csv", "json", "parquet")


def file_of(form: str, path: Path, **row: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "csv":
        path.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
    elif form == "json":
        path.write_text(json.dumps(row) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist([row]), path)
    return path


def contract(**columns: str) -> dict[str, Any]:
    return {"columns": [{"name": name, "type": kind} for name, kind in columns.items()]}


def message(spark: SparkSession, folder: Path, form: str, uris: list[Path], **params: Any) -> str:
    """The error of a load that is refused, after which there is no table."""
    params["source"] = {"format": form, **params.pop("source", {})}
    result = load(spark, folder / "t", uris, **params)
    assert result.error is not None
    assert not (folder / "t" / "_delta_log").exists()
    return result.error.message


@pytest.mark.parametrize("form", drawn(FORMATS, usual=1))
@pytest.mark.parametrize("name", ["_b", ".b", "b.csv._COPYING_"])
def test_a_named_file_that_spark_skips_is_refused(
    spark: SparkSession, tmp_path: Path, form: str, name: str
) -> None:
    first, second = (file_of(form, tmp_path / each, id=1) for each in ("a", name))
    assert name in message(spark, tmp_path, form, [first, second])


@pytest.mark.parametrize("form", drawn(FORMATS, usual=1))
def test_files_below_a_directory_are_read_or_refused(spark: SparkSession, tmp_path: Path, form: str) -> None:
    source = tmp_path / "_source"
    file_of(form, source / "a", id=1)
    file_of(form, source / "_SUCCESS", id=9)
    file_of(form, source / "_temporary" / "0" / "c", id=9)
    result = load(spark, tmp_path / "first", [source], source={"format": form})
    assert result.error is None
    assert [int(row["id"]) for row in rows_of(tmp_path / "first")] == [1]
    file_of(form, source / "sub" / "b", id=2)
    assert "/sub/b" in message(spark, tmp_path, form, [source])
    all_of_them = {"format": form, "options": {"recursiveFileLookup": True}}
    result = load(spark, tmp_path / "t", [source], source=all_of_them)
    assert result.error is None
    assert sorted(int(row["id"]) for row in rows_of(tmp_path / "t")) == [1, 2]


@pytest.mark.parametrize("form", drawn(FORMATS, usual=1))
def test_a_file_beside_partitions_is_refused(spark: SparkSession, tmp_path: Path, form: str) -> None:
    file_of(form, tmp_path / "s" / "day=1" / "a", id=1)
    file_of(form, tmp_path / "s" / "b", id=2)
    assert "/s/b" in message(spark, tmp_path, form, [tmp_path / "s"])


@pytest.mark.parametrize("form", drawn(FORMATS, usual=1))
def test_directories_values_have_the_contracts_types(spark: SparkSession, tmp_path: Path, form: str) -> None:
    for code in ("007", "08"):
        file_of(form, tmp_path / "s" / f"code={code}" / "day=2024-01-01" / "a", id=1)
    source = {"format": form, "uris": [str(tmp_path / "s")]}
    assert load(spark, tmp_path / "names", [tmp_path / "s"], source=source).error is None
    assert {(row["code"], row["day"]) for row in rows_of(tmp_path / "names")} == {
        ("007", "2024-01-01"),
        ("08", "2024-01-01"),
    }
    types = contract(id="long", code="string", day="date")
    assert load(spark, tmp_path / "typed", [tmp_path / "s"], source=source, contract=types).error is None
    assert {(row["id"], row["code"], row["day"]) for row in rows_of(tmp_path / "typed")} == {
        (1, "007", dt.date(2024, 1, 1)),
        (1, "08", dt.date(2024, 1, 1)),
    }
    numbers = contract(id="long", code="long", day="date")
    assert load(spark, tmp_path / "numbers", [tmp_path / "s"], source=source, contract=numbers).error is None
    assert {row["code"] for row in rows_of(tmp_path / "numbers")} == {7, 8}
    file_of(form, tmp_path / "s" / "code=x" / "day=2024-01-01" / "a", id=1)
    assert "code" in message(spark, tmp_path, form, [tmp_path / "s"], contract=numbers)


@pytest.mark.parametrize("form", drawn(FORMATS, usual=1))
def test_a_column_of_file_and_directory_is_refused(spark: SparkSession, tmp_path: Path, form: str) -> None:
    file_of(form, tmp_path / "s" / "ID=9" / "a", id=1, txt="a")
    assert "'ID'" in message(spark, tmp_path, form, [tmp_path / "s"])


@pytest.mark.parametrize(
    "options",
    [{"samplingRatio": "0.01"}, {"multiLine": True}, {"encoding": "UTF-16"}, {"mode": "DROPMALFORMED"}],
)
def test_options_that_would_lose_json_are_refused(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    file = file_of("json", tmp_path / "a", id=1)
    (name,) = options
    assert name in message(spark, tmp_path, "json", [file], source={"options": options})


def test_json_options_are_those_of_both_readings(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    file_of("json", folder / "a.json", id=1)
    (folder / "a.json").write_text('{"id": 1, "o": [1,\n2]};{"id": 2, "late": "x"};')
    (folder / "b.txt").write_text("no object")
    options = {"lineSep": ";", "pathGlobFilter": "*.json"}
    result = load(spark, tmp_path / "t", [folder], source={"format": "json", "options": options})
    assert result.error is None
    assert {(row["id"], row["late"]) for row in rows_of(tmp_path / "t")} == {("1", None), ("2", "x")}
    (folder / "a.json").write_text("{id: 1}\n")
    unquoted = {"options": {"allowUnquotedFieldNames": True, "pathGlobFilter": "*.json"}, "format": "json"}
    assert load(spark, tmp_path / "unquoted", [folder], source=unquoted).error is None
    assert rows_of(tmp_path / "unquoted") == [{"id": "1"}]


def test_parquet_types_are_those_of_the_files(spark: SparkSession, tmp_path: Path) -> None:
    """In a session that takes binary for strings, times without zone for instants, and refuses INT96."""
    moment = pa.array([dt.datetime(2024, 1, 1, 2)], pa.timestamp("us"))
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": moment, "raw": pa.array([b"\xff"])}), file)
    old = tmp_path / "b.parquet"
    pq.write_table(pa.table({"old": moment}), old, use_deprecated_int96_timestamps=True)
    settings = {
        "spark.sql.parquet.binaryAsString": "true",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
        "spark.sql.parquet.int96AsTimestamp": "false",
        "spark.sql.session.timeZone": "America/New_York",
    }
    with set_so(spark, settings):
        assert load(spark, tmp_path / "t", [file]).error is None
        assert load(spark, tmp_path / "old", [old]).error is None
        assert all(spark.conf.get(name) == value for name, value in settings.items())
    (row,) = rows_of(tmp_path / "t")
    assert row == {"at": dt.datetime(2024, 1, 1, 2), "raw": b"\xff"}
    assert rows_of(tmp_path / "old") == [{"old": dt.datetime(2024, 1, 1, 2, tzinfo=dt.UTC)}]


def test_nanoseconds_are_refused_in_every_session(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns", "UTC"))}), file, version="2.6")
    with set_so(spark, {"spark.sql.legacy.parquet.nanosAsLong": "true"}):
        assert "NANOS" in message(spark, tmp_path, "parquet", [file])


def test_a_malformed_row_is_refused_whatever_is_filtered(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,txt\n1,a,zzz\n2,b\n")
    filtered = {"where": "id = '2'", "select": {"id": "id"}}
    assert "a.csv" in message(spark, tmp_path, "csv", [file], source=filtered)
    file.write_text("id,txt\n1,a\n2,b\n")
    assert load(spark, tmp_path / "t", [file], source=filtered).error is None
    assert rows_of(tmp_path / "t") == [{"id": "2"}]
