"""Tables whose columns are mapped, filled or widened, written through the public functions: peers read them.

DuckDB's extension (delta-kernel) reads all of them; deltalake those without type widening and by name.
"""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, GroupCommit, write_deltalake
from delta_core.errors import (
    ConstraintViolationError,
    InvalidTablePropertyError,
    MaxCommitAttemptsError,
    SchemaEvolutionError,
    SchemaMismatchError,
)
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import DATE, INTEGER, LONG, STRING, TIMESTAMP, StructField, StructType
from delta_core.table_features.generation import define_generated
from delta_core.table_features.identity import define_identity
from delta_core.transaction.commit_properties import CommitProperties
from tests.support.delta_spark import by_delta_spark


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        yield connection


def rows_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted(found, key=repr)


def same_in(duck: duckdb.DuckDBPyConnection, path: Path) -> list[dict[str, Any]]:
    """Our rows, once DuckDB has read the same."""
    ours = rows_of(path)
    names = ", ".join(f'"{name}"' for name in schema_of(path).names)
    theirs = duck.execute(f"SELECT {names} FROM delta_scan(?)", [str(path)]).to_arrow_table().to_pylist()
    assert sorted(theirs, key=repr) == ours
    return ours


def schema_of(path: Path) -> StructType:
    return schema_from_json(DeltaTable(path).metadata().schema_string)


def highest_id(path: Path) -> int:
    return int(DeltaTable(path).metadata().configuration["delta.columnMapping.maxColumnId"])


# ------------------------------------------------------------ column mapping

PLANES = pa.table(
    {
        "day of flight": ["mon", "tue", "mon"],
        "id": pa.array([1, 2, 3], pa.int64()),
        "s": [{"x": 1}, {"x": 2}, None],
    }
)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_every_path_of_rows_into_a_mapped_table(tmp_path, duck, mode) -> None:
    path = tmp_path / "t"
    write_deltalake(
        path,
        PLANES,
        partition_by=["day of flight"],
        configuration={"delta.columnMapping.mode": mode},
    )
    assert same_in(duck, path) == sorted(PLANES.to_pylist(), key=repr)
    first = {field.name: field.metadata for field in schema_of(path)}
    assert first["id"]["delta.columnMapping.physicalName"] != "id"
    write_deltalake(path, PLANES.slice(0, 1), mode="append")
    with GroupCommit(path) as group:
        assert group.append(PLANES.slice(1, 1)).result().version == 2
    assert [row["id"] for row in same_in(duck, path)].count(2) == 2
    # By partition without reading, and by rows with a file that is written anew.
    write_deltalake(
        path,
        PLANES.slice(1, 1),
        mode="overwrite",
        predicate="`day of flight` = 'tue'",
    )
    write_deltalake(path, PLANES.slice(0, 1), mode="overwrite", predicate="id = 1")
    assert sorted(row["id"] for row in same_in(duck, path)) == [1, 2, 3]
    wider = PLANES.append_column("new", pa.array(["a", "b", "c"]))
    write_deltalake(path, wider, mode="append", schema_mode="merge")
    assert highest_id(path) == 5
    assert len(same_in(duck, path)) == 6
    DeltaTable(path).alter.rename_column("id", "the id")
    DeltaTable(path).alter.drop_columns("new")
    assert same_in(duck, path)[0].keys() == {"day of flight", "the id", "s"}
    write_deltalake(path, wider, mode="overwrite", schema_mode="overwrite")
    assert same_in(duck, path) == sorted(wider.to_pylist(), key=repr)
    last = {field.name: field.metadata for field in schema_of(path)}
    assert last["s"] == first["s"]
    assert (last["new"]["delta.columnMapping.id"], highest_id(path)) == (7, 7)
    write_deltalake(path, wider, mode="overwrite")
    assert same_in(duck, path) == sorted(wider.to_pylist(), key=repr)


def test_mapping_comes_to_a_table_with_files(tmp_path, duck) -> None:
    path = tmp_path / "t"
    rows = pa.table({"a": [1, 2], "b": ["x", "y"]})
    write_deltalake(path, rows, configuration={"delta.constraints.c": "a > 0"})
    table = DeltaTable(path)
    with pytest.raises(InvalidTablePropertyError, match="from none to id"):
        table.alter.set_properties({"delta.columnMapping.mode": "id"})
    table.alter.set_properties({"delta.columnMapping.mode": "name"})
    assert (table.protocol().min_reader_version, highest_id(path)) == (2, 2)
    with pytest.raises(SchemaEvolutionError, match="c"):
        table.alter.rename_column("a", "z")
    table.alter.rename_column("b", "with space")
    write_deltalake(table, rows.rename_columns(["a", "with space"]), mode="append")
    assert same_in(duck, path)[0] == {"a": 1, "with space": "x"}
    table.alter.set_properties({"delta.columnMapping.mode": "name", "owner": "ann"})
    assert highest_id(path) == 2
    for keys in ({"delta.columnMapping.mode": "none"}, {"delta.columnMapping.mode": "id"}):
        with pytest.raises(InvalidTablePropertyError):
            table.alter.set_properties(keys)
    table.alter.drop_columns("with space")
    table.alter.add_columns(StructField(name="b", data_type=STRING))
    assert same_in(duck, path)[0] == {"a": 1, "b": None}
    assert highest_id(path) == 3


# ------------------------------------------------------------ defaults and generated columns


def test_defaults(tmp_path, duck) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"a": [1]}))
    table = DeltaTable(path)
    table.alter.add_columns(StructField(name="b", data_type=STRING))
    table.alter.set_default("b", "'x'")
    assert "allowColumnDefaults" in table.protocol().writer_features
    write_deltalake(table, pa.table({"a": [2]}), mode="append")
    write_deltalake(table, pa.table({"a": [3], "b": pa.array([None], pa.string())}), mode="append")
    write_deltalake(table, pa.table({"a": [4], "c": [1]}), mode="append", schema_mode="merge")
    with GroupCommit(table) as group:
        group.append(pa.table({"a": [5]})).result()
    write_deltalake(path, pa.table({"a": [6]}), mode="overwrite", predicate="a = 1 OR a = 6")
    assert {row["a"]: row["b"] for row in same_in(duck, path)} == {2: "x", 3: None, 4: "x", 5: "x", 6: "x"}
    DeltaTable(path).alter.drop_default("b")
    write_deltalake(path, pa.table({"a": [7]}), mode="overwrite")
    assert same_in(duck, path) == [{"a": 7, "b": None, "c": None}]


def test_generated_columns(tmp_path, duck) -> None:
    path = tmp_path / "t"
    day = define_generated(StructField(name="day", data_type=DATE), "CAST(t AS DATE)")
    schema = StructType((StructField(name="t", data_type=TIMESTAMP), day))
    DeltaTable.create(path, schema, partition_by=["day"])
    times = [dt.datetime(2020, 1, 31, 23, tzinfo=dt.UTC), dt.datetime(2020, 2, 1, tzinfo=dt.UTC)]
    write_deltalake(path, pa.table({"t": times}), mode="append")
    with GroupCommit(path) as group:
        group.append(pa.table({"t": times[:1]})).result()
    assert sorted(row["day"].day for row in same_in(duck, path)) == [1, 31, 31]
    wrong = pa.table({"t": times, "day": [dt.date(2020, 1, 31)] * 2})
    for options in ({"mode": "append"}, {"mode": "overwrite", "predicate": "day > DATE '1970-01-01'"}):
        with pytest.raises(ConstraintViolationError, match="Generated column day"):
            write_deltalake(path, wrong, **options)
    write_deltalake(path, pa.table({"t": times[:1]}), mode="overwrite", predicate="day = DATE '2020-01-31'")
    assert len(same_in(duck, path)) == 2
    before = same_in(duck, path)
    DeltaTable(path).optimize.compact()
    assert sorted(map(repr, same_in(duck, path))) == sorted(map(repr, before))


# ------------------------------------------------------------ identity columns


def numbered(path: Path, **options: Any) -> None:
    number = define_identity(StructField(name="n", data_type=LONG), **options)
    DeltaTable.create(path, StructType((number, StructField(name="a", data_type=LONG))))


def mark(path: Path) -> int:
    (found,) = [f.metadata["delta.identity.highWaterMark"] for f in schema_of(path) if f.name == "n"]
    return int(found)


def test_identity_columns_on_every_path(tmp_path, duck) -> None:
    path = tmp_path / "t"
    numbered(path, start=10, step=5)
    write_deltalake(path, pa.table({"a": [1, 2]}), mode="append")
    assert (same_in(duck, path), mark(path)) == ([{"n": 10, "a": 1}, {"n": 15, "a": 2}], 15)
    with GroupCommit(path) as group:
        for number in range(3, 6):
            group.append(pa.table({"a": [number]}))
    write_deltalake(path, pa.table({"a": [6]}), mode="overwrite", predicate="a = 1 OR a = 6")
    write_deltalake(path, pa.table({"a": [7], "b": ["x"]}), mode="append", schema_mode="merge")
    rows = same_in(duck, path)
    assert sorted(row["n"] for row in rows) == [15, 20, 25, 30, 35, 40]
    with pytest.raises(SchemaMismatchError, match="identity column n"):
        write_deltalake(path, pa.table({"n": [1], "a": [1]}), mode="append")
    write_deltalake(path, pa.table({"a": [8]}), mode="overwrite")
    assert same_in(duck, path) == [{"n": 45, "a": 8, "b": None}]
    assert mark(path) == 45


def test_two_writers_never_give_one_number_twice(tmp_path) -> None:
    path = tmp_path / "t"
    numbered(path)
    start = threading.Barrier(3)

    def append(first: int) -> None:
        start.wait()
        for number in range(first, first + 5):
            write_deltalake(path, pa.table({"a": [number]}), mode="append")

    def group() -> None:
        start.wait()
        with GroupCommit(path) as grouped:
            for number in range(100, 105):
                grouped.append(pa.table({"a": [number]}))

    threads = [threading.Thread(target=append, args=(f,)) for f in (0, 50)]
    threads.append(threading.Thread(target=group))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = rows_of(path)
    assert len(rows) == len({row["n"] for row in rows}) == 15
    assert mark(path) == max(row["n"] for row in rows)
    named = {add["path"] for add in DeltaTable(path).get_add_actions(flatten=True).to_pylist()}
    assert {file.name for file in path.glob("*.parquet")} == named


@pytest.mark.parametrize("attempts", [12, 11])
def test_a_group_goes_on_while_others_take_its_numbers(tmp_path, monkeypatch, attempts: int) -> None:
    """Another writer is first eleven times: the properties say how often is too often."""
    path = tmp_path / "t"
    numbered(path)
    others = iter(range(11))
    staged = GroupCommit._staged

    def overtaken(self, *arguments):
        for number in islice(others, 1):
            write_deltalake(path, pa.table({"a": [number]}), mode="append")
        return staged(self, *arguments)

    monkeypatch.setattr(GroupCommit, "_staged", overtaken)
    with GroupCommit(path, commit_properties=CommitProperties(max_attempts=attempts)) as group:
        outcome = group.append(pa.table({"a": [100]}))
    if attempts == 11:
        with pytest.raises(MaxCommitAttemptsError):
            outcome.result()
    else:
        assert outcome.result().version == 12
    assert sorted(row["n"] for row in rows_of(path)) == list(range(1, attempts + 1))


def test_a_stale_handle_writes_its_numbers_anew(tmp_path) -> None:
    path = tmp_path / "t"
    numbered(path)
    stale = DeltaTable(path)
    write_deltalake(path, pa.table({"a": [1]}), mode="append")
    write_deltalake(stale, pa.table({"a": [2]}), mode="append")
    assert rows_of(path) == [{"n": 1, "a": 1}, {"n": 2, "a": 2}]


# ------------------------------------------------------------ wider types


def test_types_widen_by_name_and_by_merging(tmp_path, duck) -> None:
    path = tmp_path / "t"
    rows = pa.table({"a": pa.array([1], pa.int16()), "b": pa.array([1.5], pa.float32())})
    write_deltalake(path, rows)
    table = DeltaTable(path)
    with pytest.raises(SchemaEvolutionError, match="Type widening is not enabled"):
        table.alter.change_type("a", INTEGER)
    table.alter.set_properties({"delta.enableTypeWidening": "true"})
    table.alter.change_type("a", INTEGER)
    assert schema_of(path).find("a").metadata["delta.typeChanges"] == [
        {"fromType": "short", "toType": "integer"}
    ]
    write_deltalake(
        table,
        pa.table({"a": pa.array([2**40], pa.int64()), "b": pa.array([2.5], pa.float64())}),
        mode="append",
        schema_mode="merge",
    )
    assert len(schema_of(path).find("a").metadata["delta.typeChanges"]) == 2
    assert same_in(duck, path) == [{"a": 1, "b": 1.5}, {"a": 2**40, "b": 2.5}]
    write_deltalake(path, pa.table({"a": [5], "b": [0.5]}), mode="overwrite", predicate="a > 4")
    write_deltalake(path, pa.table({"a": [6], "b": [1.5]}), mode="overwrite", predicate="a IN (1, 6)")
    assert [row["a"] for row in same_in(duck, path)] == [5, 6]


# ------------------------------------------------------------ delta-spark


def everything(path: Path) -> None:
    """One table with all of it, in the order in which a table would grow into it."""
    number = define_identity(StructField(name="n", data_type=LONG), start=5, step=5)
    doubled = define_generated(StructField(name="twice", data_type=LONG), "a * 2")
    fields = (
        number,
        StructField(name="a", data_type=LONG),
        doubled,
        StructField(name="p", data_type=INTEGER),
    )
    configuration = {"delta.columnMapping.mode": "id", "delta.enableTypeWidening": "true"}
    DeltaTable.create(path, StructType(fields), partition_by=["p"], configuration=configuration)
    rows = pa.table({"a": [1, 2, 3], "p": pa.array([1, 1, None], pa.int32())})
    write_deltalake(path, rows, mode="append")
    alter = DeltaTable(path).alter
    alter.add_columns(StructField(name="with space", data_type=STRING))
    alter.set_default("with space", "'x'")
    alter.change_type("p", LONG)
    alter.rename_column("p", "part of it")
    rows = rows.rename_columns(["a", "part of it"])
    write_deltalake(path, rows, mode="append")
    with GroupCommit(path) as group:
        group.append(rows).result()
    write_deltalake(path, rows.slice(0, 1), mode="overwrite", predicate="a = 1")


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_reads_the_same_rows(tmp_path: Path) -> None:
    tables = [tmp_path / "all", tmp_path / "grown"]
    everything(tables[0])
    write_deltalake(tables[1], pa.table({"a": pa.array([1], pa.int16()), "b": ["x"]}))
    alter = DeltaTable(tables[1]).alter
    alter.set_properties({"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"})
    alter.rename_column("b", "c d")
    alter.change_type("a", LONG)
    write_deltalake(tables[1], pa.table({"a": [2**40], "c d": ["y"]}), mode="append")
    requests = [{"uri": str(path), "version": DeltaTable(path).version()} for path in tables]
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    by_delta_spark("reader", str(tmp_path / "requests.json"), str(tmp_path))
    for index, path in enumerate(tables):
        theirs = pq.read_table(tmp_path / f"{index}.parquet").to_pylist()
        assert sorted(theirs, key=repr) == rows_of(path)
        assert theirs


def test_all_of_it_in_one_table(tmp_path, duck) -> None:
    everything(tmp_path / "t")
    rows = rows_of(tmp_path / "t")
    # DuckDB's extension gives null for partition columns of numbers where columns are mapped.
    seen = duck.execute('SELECT n, a, twice, "with space" FROM delta_scan(?)', [str(tmp_path / "t")])
    unpartitioned = [{k: v for k, v in row.items() if k != "part of it"} for row in rows]
    assert sorted(seen.to_arrow_table().to_pylist(), key=repr) == sorted(unpartitioned, key=repr)
    assert {row["n"] for row in rows} == {*range(10, 20, 5), 25, 30, 40, 45, 50}
    assert all(row["twice"] == 2 * row["a"] for row in rows)
