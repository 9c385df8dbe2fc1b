from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from delta_core import CommitProperties, DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.actions import AddFile
from delta_core.actions.json_codec import decode_commit
from delta_core.errors import (
    ConfigurationError,
    InvalidTableError,
    InvalidTablePropertyError,
    SchemaError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedTableFeatureError,
)
from delta_core.maintenance.convert import apply_conversion, plan_conversion
from delta_core.maintenance.convert.schema_union import SchemaUnion
from delta_core.schema.arrow import from_arrow
from delta_core.schema.types import LONG, StructType
from delta_core.storage.local import LocalLogStore

WIDE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "small": pa.array([1, None, 3], pa.int16()),
        "unsigned": pa.array([1, 4_000_000_000, None], pa.uint32()),
        "name": ["a", "ü", None],
        "x": [0.5, float("nan"), None],
        "price": pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(9, 2)),
        "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1999, 1, 1)]),
        "at": pa.array([dt.datetime(2024, 1, 1, 12), None, None], pa.timestamp("us", "UTC")),
        "point": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int32())])),
        "tags": pa.array([["x"], [], None], pa.list_(pa.string())),
    }
)


def by_id(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in an order of their own, comparable though some hold NaN, columns by name."""
    rows = [{k: str(v) if v != v else v for k, v in row.items()} for row in table.to_pylist()]
    return [dict(sorted(row.items())) for row in sorted(rows, key=lambda row: row["id"])]


def ours(path: Path) -> pa.Table:
    return DeltaTable(path).to_pyarrow_table()


def by_duckdb(path: Path, columns: str) -> list[tuple[Any, ...]]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        query = f"SELECT {columns} FROM delta_scan(?) ORDER BY id"
        return connection.execute(query, [str(path)]).fetchall()


def adds(path: Path) -> dict[str, AddFile]:
    actions = decode_commit((path / "_delta_log" / f"{0:020}.json").read_bytes(), path="0")
    return {action.path: action for action in actions if isinstance(action, AddFile)}


def written(path: Path, table: pa.Table, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def files_below(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and "_delta_log" not in file.parts
    }


def test_peers_read_the_rows_that_the_files_have(tmp_path: Path) -> None:
    root = tmp_path / "t"
    written(root / "one.parquet", WIDE.slice(0, 2))
    written(root / "sub" / "two.parquet", WIDE.slice(2))
    before = files_below(root)
    committed = convert_to_deltalake(root)
    assert committed is not None
    assert committed.version == 0
    assert files_below(root) == before
    expected = by_id(pq.read_table(root / "one.parquet")) + by_id(pq.read_table(root / "sub/two.parquet"))
    assert by_id(ours(root)) == expected
    assert by_id(deltalake.DeltaTable(str(root)).to_pyarrow_table()) == expected
    columns = ("id", "small", "unsigned", "name")
    assert by_duckdb(root, ", ".join(columns)) == [tuple(row[name] for name in columns) for row in expected]
    entry = DeltaTable(root).history()[0].commit_info
    assert entry.operation == "CONVERT"
    assert entry.operation_metrics == {"numConvertedFiles": "2", "numOutputRows": "3"}


def test_statistics_are_those_of_the_footers_and_skip_files(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path / f"{number}.parquet", pa.table({"id": range(number * 10, number * 10 + 10)}))
    convert_to_deltalake(tmp_path)
    stats = {path: json.loads(add.stats or "") for path, add in adds(tmp_path).items()}
    assert stats["1.parquet"] == {
        "numRecords": 10,
        "minValues": {"id": 10},
        "maxValues": {"id": 19},
        "nullCount": {"id": 0},
    }
    assert [Path(uri).name for uri in DeltaTable(tmp_path).file_uris("id = 25")] == ["2.parquet"]


def test_without_statistics_the_number_of_rows_is_still_there(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1, 2]}))
    convert_to_deltalake(tmp_path, collect_stats=False)
    assert adds(tmp_path)["a.parquet"].stats == '{"numRecords":2}'


def test_hive_partitions_are_decoded_once_and_read_by_peers(tmp_path: Path) -> None:
    source = pa.table(
        {
            "id": range(6),
            "year": pa.array([2023, 2024, 2024, None, 2023, 2024], pa.int32()),
            "city": ["Köln", "a b", "x/y", "100%", "=", "Köln"],
        }
    )
    flavor = ds.partitioning(pa.schema([("year", pa.int32()), ("city", pa.string())]), flavor="hive")
    ds.write_dataset(source, tmp_path, format="parquet", partitioning=flavor)
    partition_by = pa.schema([("year", pa.int32()), ("city", pa.string())])
    convert_to_deltalake(tmp_path, partition_by=partition_by)
    expected = by_id(source)
    assert by_id(ours(tmp_path)) == expected
    assert by_id(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()) == expected
    assert by_duckdb(tmp_path, "id, year, city") == [
        (row["id"], row["year"], row["city"]) for row in expected
    ]
    assert ours(tmp_path).schema.names == ["id", "year", "city"]
    assert {add.partition_values["city"] for add in adds(tmp_path).values()} == set(
        source["city"].to_pylist()
    )


def test_partition_values_take_the_form_of_the_log(tmp_path: Path) -> None:
    written(tmp_path / "n=007/day=2024-03-01/a.parquet", pa.table({"id": [1]}))
    written(tmp_path / "n=8/day=__HIVE_DEFAULT_PARTITION__/a.parquet", pa.table({"id": [2]}))
    convert_to_deltalake(tmp_path, partition_by=pa.schema([("n", pa.int64()), ("day", pa.date32())]))
    assert [dict(add.partition_values) for add in adds(tmp_path).values()] == [
        {"n": "7", "day": "2024-03-01"},
        {"n": "8", "day": None},
    ]
    assert by_id(ours(tmp_path)) == [
        {"day": dt.date(2024, 3, 1), "id": 1, "n": 7},
        {"day": None, "id": 2, "n": 8},
    ]


def test_directories_of_values_alone(tmp_path: Path) -> None:
    written(tmp_path / "2024/5/a.parquet", pa.table({"id": [1]}))
    parts = pa.schema([("year", pa.int32()), ("month", pa.int32())])
    convert_to_deltalake(tmp_path, partition_by=parts, partition_strategy="directory")
    assert by_id(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()) == [
        {"id": 1, "month": 5, "year": 2024}
    ]


def test_a_partition_column_within_the_files_is_that_of_the_directory(tmp_path: Path) -> None:
    written(tmp_path / "p=2/a.parquet", pa.table({"p": ["2"], "id": [1]}))
    convert_to_deltalake(tmp_path, partition_by=pa.schema([("p", pa.int32())]))
    assert by_id(ours(tmp_path)) == by_id(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table())
    assert by_id(ours(tmp_path)) == [{"id": 1, "p": 2}]


def test_partitions_of_which_nothing_was_said_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "year=2024/a.parquet", pa.table({"id": [1]}))
    with pytest.raises(SchemaError, match="year") as caught:
        convert_to_deltalake(tmp_path)
    assert "partition_by=pa.schema([('year', pa.string())])" in caught.value.fix
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize(
    ("directory", "columns"),
    [
        ("year=2024", {"month": pa.int32()}),
        ("year=2024", {"year": pa.int32(), "month": pa.int32()}),
        ("year=2024/month=1", {"month": pa.int32(), "year": pa.int32()}),
        ("other", {"year": pa.int32()}),
        ("year=soon", {"year": pa.int32()}),
        ("year=%FF", {"year": pa.string()}),
        ("", {"year": pa.int32()}),
    ],
)
def test_other_directories_are_refused(tmp_path: Path, directory: str, columns: dict[str, Any]) -> None:
    written(tmp_path / directory / "a.parquet", pa.table({"id": [1]}))
    with pytest.raises(SchemaError):
        convert_to_deltalake(tmp_path, partition_by=pa.schema(columns))
    assert not (tmp_path / "_delta_log").exists()


def test_columns_are_the_union_of_the_files(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": pa.array([1], pa.int8()), "old": ["x"]}))
    nested = pa.array([{"a": 1, "b": "z"}], pa.struct([("a", pa.int64()), ("b", pa.string())]))
    written(tmp_path / "b.parquet", pa.table({"id": pa.array([300], pa.int16()), "s": nested}))
    written(
        tmp_path / "c.parquet",
        pa.table({"id": pa.array([70_000], pa.int32()), "old": pa.nulls(1), "new": [True]}),
    )
    convert_to_deltalake(tmp_path)
    expected = [
        {"id": 1, "new": None, "old": "x", "s": None},
        {"id": 300, "new": None, "old": None, "s": {"a": 1, "b": "z"}},
        {"id": 70_000, "new": True, "old": None, "s": None},
    ]
    assert by_id(ours(tmp_path)) == expected
    assert by_id(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()) == expected
    # Read before the last columns were known, and described by all of them.
    stats = json.loads(adds(tmp_path)["a.parquet"].stats or "")
    assert stats["nullCount"] == {"id": 0, "old": 0, "s": {"a": 1, "b": 1}, "new": 1}
    assert stats["maxValues"] == {"id": 1, "old": "x"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int32(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.float32(), pa.float64()),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.string())])),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    ],
)
def test_types_that_differ_are_refused(tmp_path: Path, one: pa.DataType, other: pa.DataType) -> None:
    for name, kind in (("a", one), ("b", other)):
        written(tmp_path / f"{name}.parquet", pa.table({"c": pa.nulls(1, kind)}))
    with pytest.raises(SchemaMismatchError, match=r"b\.parquet"):
        convert_to_deltalake(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


def test_names_that_differ_in_case_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"Id": [1]}))
    written(tmp_path / "b.parquet", pa.table({"id": [1]}))
    with pytest.raises(SchemaMismatchError, match="spelled Id in other files"):
        convert_to_deltalake(tmp_path)


@pytest.mark.parametrize("other", ["id", "ID"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_file_with_two_columns_of_one_name_is_refused(tmp_path: Path, other: str, nested: bool) -> None:
    """Engines read the one or the other of them."""
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", other])
    if nested:
        twice = pa.table({"s": twice.to_struct_array()})
    written(tmp_path / "a.parquet", twice)
    with pytest.raises(SchemaError, match=r"two columns|same name"):
        convert_to_deltalake(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


def test_with_type_widening_the_widest_type_wins_and_each_step_is_recorded() -> None:
    union = SchemaUnion(widens=True)
    for number, kind in enumerate((pa.int64(), pa.int32(), pa.int8(), pa.int32())):
        listed = pa.list_(pa.decimal128(5 + number % 2, number % 2))
        union.add(from_arrow(pa.schema([("c", kind), ("l", listed)])), f"{number}.parquet")
    column, listed_column = union.result().fields
    assert column.data_type == LONG
    assert column.metadata["delta.typeChanges"] == [
        {"fromType": "byte", "toType": "integer"},
        {"fromType": "integer", "toType": "long"},
    ]
    assert listed_column.metadata["delta.typeChanges"] == [
        {"fromType": "decimal(5,0)", "toType": "decimal(6,1)", "fieldPath": "element"}
    ]
    with pytest.raises(SchemaMismatchError):
        union.add(from_arrow(pa.schema([("c", pa.float32())])), "f.parquet")


def test_without_a_record_where_types_are_stored_alike() -> None:
    union = SchemaUnion(widens=True)
    for kind in (pa.int8(), pa.int32(), pa.int16()):
        union.add(from_arrow(pa.schema([("c", kind)])), "x.parquet")
    assert dict(union.result().fields[0].metadata) == {}


def test_old_timestamps_are_instants(tmp_path: Path) -> None:
    at = dt.datetime(2024, 1, 1, 12, 30)
    table = pa.table(
        {
            "id": [1],
            "at": pa.array([at], pa.timestamp("us")),
            "all": pa.array([[at]], pa.list_(pa.timestamp("us"))),
        }
    )
    written(tmp_path / "a.parquet", table, use_deprecated_int96_timestamps=True, store_schema=False)
    convert_to_deltalake(tmp_path)
    zoned = at.replace(tzinfo=dt.UTC)
    assert by_id(ours(tmp_path)) == [{"all": [zoned], "at": zoned, "id": 1}]
    assert DeltaTable(tmp_path).protocol().min_writer_version == 2


@pytest.mark.parametrize(
    "column",
    [
        pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns")),
        pa.array([1], pa.uint64()),
        pa.array([1.0], pa.float16()),
        pa.array([dt.time(1)], pa.time64("us")),
        pa.array([[{"t": 1}]], pa.list_(pa.struct([("t", pa.uint64())]))),
    ],
)
def test_types_that_no_table_has_are_refused(tmp_path: Path, column: pa.Array) -> None:
    written(tmp_path / "a.parquet", pa.table({"c": column}))
    with pytest.raises(SchemaError, match=r"a\.parquet"):
        convert_to_deltalake(tmp_path)


def test_hidden_files_are_left_alone(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1]}))
    for name in ("_SUCCESS", ".a.parquet.crc", "_metadata", "_temporary/0/b.parquet", ".hidden/c.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("no Parquet")
    convert_to_deltalake(tmp_path)
    assert list(adds(tmp_path)) == ["a.parquet"]


def test_a_partition_column_may_begin_with_an_underscore(tmp_path: Path) -> None:
    written(tmp_path / "_day=1/a.parquet", pa.table({"id": [1]}))
    convert_to_deltalake(tmp_path, partition_by=pa.schema([("_day", pa.int32())]))
    assert by_id(ours(tmp_path)) == [{"_day": 1, "id": 1}]


@pytest.mark.parametrize("name", ["readme.txt", "empty.parquet"])
def test_a_file_that_is_no_parquet_stands_in_the_way(tmp_path: Path, name: str) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1]}))
    (tmp_path / name).write_text("hello, this is no Parquet file" if name.endswith("txt") else "")
    with pytest.raises(InvalidTableError, match=name):
        convert_to_deltalake(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


def test_nothing_to_convert(tmp_path: Path) -> None:
    with pytest.raises(InvalidTableError, match="no Parquet files"):
        convert_to_deltalake(tmp_path / "missing")


def test_a_table_within_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1]}))
    write_deltalake(tmp_path / "inner", pa.table({"id": [1]}))
    with pytest.raises(InvalidTableError, match="'inner'"):
        convert_to_deltalake(tmp_path)


def test_a_table_is_never_converted(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    before = sorted((tmp_path / "_delta_log").iterdir())
    with pytest.raises(TableExistsError):
        convert_to_deltalake(tmp_path)
    assert convert_to_deltalake(tmp_path, mode="ignore") is None
    assert sorted((tmp_path / "_delta_log").iterdir()) == before
    with pytest.raises(ConfigurationError):
        convert_to_deltalake(tmp_path, mode="overwrite")  # type: ignore[arg-type]


def test_a_log_directory_with_anything_in_it_counts_as_a_table(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1]}))
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "left-over").write_text("")
    with pytest.raises(TableExistsError):
        convert_to_deltalake(tmp_path)


def test_a_table_that_comes_in_between_wins(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1]}))
    plan = plan_conversion(LocalLogStore(tmp_path))
    write_deltalake(tmp_path, pa.table({"id": [7]}))
    with pytest.raises(TableExistsError):
        apply_conversion(plan)
    assert by_id(ours(tmp_path)) == [{"id": 7}]


def test_a_repeated_call_with_a_key_changes_nothing(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1]}))
    properties = CommitProperties(txn=("job", 1))
    first = convert_to_deltalake(tmp_path, commit_properties=properties)
    second = convert_to_deltalake(tmp_path, commit_properties=properties)
    assert first is not None
    assert second is not None
    assert (first.already_applied, second.already_applied) == (False, True)


@pytest.mark.parametrize(
    "key",
    [
        "delta.constraints.positive",
        "delta.columnMapping.mode",
        "delta.columnMapping.maxColumnId",
        "delta.enableIcebergCompatV2",
        "delta.enableMaterializePartitionColumnsFeature",
        "delta.noSuchThing",
    ],
)
def test_properties_that_say_what_nobody_knows_are_refused(tmp_path: Path, key: str) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1]}))
    values = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "3"}
    with pytest.raises((InvalidTablePropertyError, UnsupportedTableFeatureError)):
        convert_to_deltalake(tmp_path, configuration={key: values.get(key, "true")})
    assert not (tmp_path / "_delta_log").exists()


def test_name_description_and_properties_are_the_tables(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", pa.table({"id": [1], "when": pa.nulls(1, pa.timestamp("us"))}))
    convert_to_deltalake(
        tmp_path,
        name="n",
        description="d",
        configuration={"delta.appendOnly": "true", "delta.enableInCommitTimestamps": "true", "mine": "1"},
    )
    table = deltalake.DeltaTable(str(tmp_path))
    assert (table.metadata().name, table.metadata().description) == ("n", "d")
    assert table.metadata().configuration["delta.appendOnly"] == "true"
    protocol = DeltaTable(tmp_path).protocol()
    assert {"timestampNtz", "inCommitTimestamp", "appendOnly"} <= (protocol.writer_features or frozenset())


def test_rows_go_on_being_written_and_removed(tmp_path: Path, helpers: Any) -> None:
    written(tmp_path / "a file.parquet", pa.table({"id": [1, 2]}))
    convert_to_deltalake(tmp_path)
    assert list(adds(tmp_path)) == ["a%20file.parquet"]
    write_deltalake(tmp_path, pa.table({"id": [3]}), mode="append")
    deltalake.DeltaTable(str(tmp_path)).delete("id = 1")
    assert sorted(row["id"] for row in ours(tmp_path).to_pylist()) == [2, 3]


def test_files_are_read_by_the_callers_executor(tmp_path: Path) -> None:
    for number in range(5):
        written(tmp_path / f"{number}.parquet", pa.table({"id": [number]}))
    calls: list[int] = []

    class Backwards:
        name = "backwards"

        def cores_per_task(self, tasks: int) -> int:
            return 1

        def map(self, function: Callable[..., Any], tasks: Any) -> Any:
            calls.append(len(tasks))
            for index in reversed(range(len(tasks))):
                yield index, json.loads(json.dumps(function(json.loads(json.dumps(tasks[index])))))

    convert_to_deltalake(tmp_path, executor=Backwards())
    assert calls == [1, 4, 1]
    assert [row["id"] for row in by_id(ours(tmp_path))] == list(range(5))


def test_the_plan_says_in_short_what_it_is(tmp_path: Path) -> None:
    written(tmp_path / "p=1/a.parquet", pa.table({"id": [1, 2]}))
    store = LocalLogStore(tmp_path)
    plan = plan_conversion(store, partition_by=StructType(from_arrow(pa.schema([("p", pa.int32())])).fields))
    found = plan.to_json()
    assert (found["files"], found["rows"], found["partition_columns"]) == (1, 2, ["p"])
    assert not (tmp_path / "_delta_log").exists()
