from __future__ import annotations

import datetime as dt
import gc
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.clock import ManualClock
from delta_core.data.row_files import write_data_files
from delta_core.errors import ConfigurationError, InvalidTableError, SchemaError, StorageError
from delta_core.scan.record_batches import read_file
from delta_core.schema.arrow import from_arrow
from delta_core.storage.local import LocalLogStore
from delta_core.storage.uri import resolve_data_path


def write(tmp_path, table, **options):
    store = LocalLogStore(tmp_path)
    schema = options.pop("schema", None) or from_arrow(table.schema)
    return store, schema, write_data_files(store, table, schema=schema, **options)


def read_all(store, schema, adds, partition_columns=()):
    batches = []
    for add in adds:
        path = resolve_data_path(add.path, root_uri=store.uri)
        batches += read_file(
            store,
            path,
            schema=schema,
            partition_values=add.partition_values,
            partition_columns=partition_columns,
        )
    return pa.Table.from_batches(batches)


ALL_TYPES = pa.table(
    {
        "k": pa.array([1, 2, 3], pa.int64()),
        "string": ["a", "ü/=%", None],
        "integer": pa.array([1, -1, None], pa.int32()),
        "short": pa.array([1, -1, None], pa.int16()),
        "byte": pa.array([1, -1, None], pa.int8()),
        "float": pa.array([1.5, -0.25, None], pa.float32()),
        "double": pa.array([0.1, float("inf"), None]),
        "boolean": [True, False, None],
        "date": [dt.date(2013, 1, 1), dt.date(1, 1, 1), None],
        "timestamp": pa.array(
            [dt.datetime(2013, 1, 1, 2, 3, 4, 5), dt.datetime(1960, 1, 1), None], pa.timestamp("us", "UTC")
        ),
        "ntz": pa.array(
            [dt.datetime(2013, 1, 1, 2, 3, 4, 5), dt.datetime(1960, 1, 1), None], pa.timestamp("us")
        ),
        "decimal": pa.array([Decimal("1.50"), Decimal("-99.99"), None], pa.decimal128(5, 2)),
        "binary": [b"a", b"\x01b", None],
    }
)


@pytest.mark.parametrize("name", [n for n in ALL_TYPES.schema.names if n != "k"])
def test_every_type_as_partition_column(tmp_path, name):
    store, schema, adds = write(tmp_path, ALL_TYPES, partition_columns=[name.upper()])
    assert len(adds) == 3
    assert all((tmp_path / resolve_data_path(a.path, root_uri=store.uri)).is_file() for a in adds)
    null_add = next(a for a in adds if a.partition_values[name] is None)
    assert null_add.path.startswith(f"{name}=__HIVE_DEFAULT_PARTITION__/")
    assert name not in json.loads(null_add.stats)["nullCount"]
    back = read_all(store, schema, adds, [name]).sort_by("k")
    assert back.equals(ALL_TYPES.cast(back.schema))


def test_special_characters_in_partition_values(tmp_path):
    values = ["a b", "x/y", "p=q", "100%", "a%2Fb", "ø", "q?#", "it's", '"', "[", "\x01", "a:b", ""]
    table = pa.table({"p": values, "i": list(range(len(values)))})
    store, schema, adds = write(tmp_path, table, partition_columns=["p"])
    assert {a.partition_values["p"] for a in adds} == {*values[:-1], None}
    back = read_all(store, schema, adds, ["p"]).sort_by("i")
    assert back.column("p").to_pylist() == [*values[:-1], None]


def test_null_and_empty_string_share_one_file(tmp_path):
    table = pa.table({"p": ["", None, "x"], "i": [1, 2, 3]})
    _, _, adds = write(tmp_path, table, partition_columns=["p"])
    assert sorted(json.loads(a.stats)["numRecords"] for a in adds) == [1, 2]


def test_many_partition_columns_keep_rows_and_order(tmp_path):
    rows = 5000
    table = pa.table(
        {
            "a": [i % 7 for i in range(rows)],
            "b": [None if i % 5 == 0 else f"v{i % 3}" for i in range(rows)],
            "i": list(range(rows)),
        }
    )
    store, schema, adds = write(tmp_path, table, partition_columns=["a", "b"])
    assert len(adds) == len({(r["a"], r["b"]) for r in table.to_pylist()})
    for add in adds:
        rows_of_file = read_all(store, schema, [add], ["a", "b"]).column("i").to_pylist()
        assert rows_of_file == sorted(rows_of_file)
    assert read_all(store, schema, adds, ["a", "b"]).sort_by("i").equals(table)


def test_file_sizes_and_row_limits(tmp_path):
    table = pa.table(
        {"x": pa.array(range(200_000), pa.int64()), "s": [f"{i * 7919}" for i in range(200_000)]}
    )
    store, schema, adds = write(tmp_path, table, target_file_size_bytes=300_000)
    assert len(adds) > 3
    assert all(a.size_bytes < 700_000 for a in adds)
    assert all((tmp_path / a.path).stat().st_size == a.size_bytes for a in adds)
    assert read_all(store, schema, adds).equals(table)
    _, _, adds = write(tmp_path, table, max_rows_per_file=70_000)
    assert [json.loads(a.stats)["numRecords"] for a in adds] == [70_000, 70_000, 60_000]


def test_reader_input_and_directory(tmp_path):
    table = pa.table({"p": [i % 2 for i in range(1000)], "x": list(range(1000))})
    schema = from_arrow(table.schema)
    store, schema, adds = write(
        tmp_path,
        table.to_reader(max_chunksize=10),
        schema=schema,
        partition_columns=["p"],
        directory="job-1/",
        compression="zstd",
        clock=ManualClock(1234),
        data_change=False,
    )
    assert len(adds) == 2
    assert all(a.path.startswith("job-1/p=") and a.path.endswith(".c000.zstd.parquet") for a in adds)
    assert all(a.modification_time_ms == 1234 and not a.data_change for a in adds)
    assert read_all(store, schema, adds, ["p"]).sort_by("x").equals(table)


def test_more_partitions_than_open_files(tmp_path):
    table = pa.table({"p": [i % 150 for i in range(600)], "x": list(range(600))})
    store, schema, adds = write(tmp_path, table, partition_columns=["p"])
    assert len(adds) == 150
    assert read_all(store, schema, adds, ["p"]).sort_by("x").equals(table)


def test_no_rows_no_files(tmp_path):
    table = pa.table({"x": pa.array([], pa.int64()), "p": pa.array([], pa.string())})
    assert write(tmp_path, table)[2] == []
    assert write(tmp_path, table, partition_columns=["p"])[2] == []
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_the_input_fails(tmp_path):
    schema = pa.schema([("p", pa.int64()), ("x", pa.int64())])

    def batches():
        for start in range(3):
            yield pa.record_batch({"p": [0, 1], "x": [start, start]}, schema=schema)
        raise RuntimeError("source failed")

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(RuntimeError, match="source failed"):
        write(tmp_path, reader, partition_columns=["p"], max_rows_per_file=1)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_void_columns_are_not_written(tmp_path):
    table = pa.table({"x": [1, 2], "v": pa.nulls(2), "s": pa.array([{"y": 1, "w": None}, None])})
    store, schema, adds = write(tmp_path, table)
    stored = pq.read_schema(tmp_path / adds[0].path)
    assert stored.names == ["x", "s"]
    assert [f.name for f in stored.field("s").type.fields] == ["y"]
    assert json.loads(adds[0].stats)["nullCount"] == {"x": 0, "s": {"y": 1}}
    assert read_all(store, schema, adds).to_pylist() == table.to_pylist()
    with pytest.raises(SchemaError, match="void"):
        write(tmp_path, pa.table({"v": pa.nulls(1)}))


def test_a_flipped_bit_in_a_page_is_noticed(tmp_path):
    table = pa.table({"v": pa.array(range(4096), pa.int64())})
    store, schema, adds = write(tmp_path, table, compression="none")
    (path,) = tmp_path.glob("*.parquet")
    data = bytearray(path.read_bytes())
    where = data.index((4000).to_bytes(8, "little"))
    data[where] ^= 1
    path.write_bytes(data)
    assert pq.read_table(path)["v"].to_pylist() != table["v"].to_pylist()
    with pytest.raises(InvalidTableError, match="CRC"):
        read_all(store, schema, adds)


def test_date_without_text_form_is_no_partition_value(tmp_path):
    table = pa.table({"d": pa.array([10_000_000], pa.int32()).cast(pa.date32()), "v": [1]})
    with pytest.raises(SchemaError, match="Column d"):
        write(tmp_path, table, partition_columns=["d"])
    assert list(tmp_path.iterdir()) == []


def test_bad_options(tmp_path):
    table = pa.table({"x": [1]})
    for options in (
        {"target_file_size_bytes": 0},
        {"max_rows_per_file": 0},
        {"compression": "lzo"},
        {"partition_columns": ["nope"]},
    ):
        with pytest.raises(ConfigurationError):
            write(tmp_path, table, **options)


def test_null_partition_values_in_several_chunks(tmp_path):
    column = pa.chunked_array([["a", None], ["b", None, "a"], [], [None]])
    table = pa.table({"p": column, "i": [0, 1, 2, 3, 4, 5]})
    store, schema, adds = write(tmp_path, table, partition_columns=["p"])
    assert {a.partition_values["p"]: json.loads(a.stats)["numRecords"] for a in adds} == {
        "a": 2,
        "b": 1,
        None: 3,
    }
    assert read_all(store, schema, adds, ["p"]).sort_by("i").column("p").to_pylist() == column.to_pylist()


def test_a_write_that_fails_leaves_no_writer_to_complain_later(tmp_path, monkeypatch):
    """Python tells on stderr what a writer raises that is closed once nobody holds it."""
    told = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    (tmp_path / "p=b").write_text("no directory")
    with pytest.raises(StorageError, match="Not a directory"):
        write(tmp_path, rows, partition_columns=["p"])
    gc.collect()
    assert told == []
    assert list(tmp_path.rglob("*.parquet")) == []
