"""What files hold of rows: names and ids of mapped columns, partition columns, hidden row ids."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.data.row_batch import MaterializedRowIds, RowBatch
from delta_core.errors import InputDataError, InvalidTableError
from delta_core.expressions.ast import Column, Comparison, ComparisonOperator, Literal
from tests.support.planned_tables import PlannedTable, column, mapped, struct

NESTED = (
    mapped("day of flight", "string", 1, "col-p"),
    mapped("id", "long", 2, "col-i", nullable=False),
    # Each is called as the other one in the files.
    mapped(
        "plane",
        struct(mapped("a", "string", 4, "b"), mapped("b", "long", 5, "a"), mapped("v", "void", 10, "v")),
        3,
        "col-n",
    ),
    mapped(
        "legs",
        {"type": "array", "elementType": struct(mapped("to", "string", 7, "col-o")), "containsNull": True},
        6,
        "col-l",
    ),
    mapped(
        "prices",
        {
            "type": "map",
            "keyType": "string",
            "valueType": struct(mapped("eur", "long", 9, "col-e")),
            "valueContainsNull": True,
        },
        8,
        "col-m",
    ),
    mapped("none", "void", 11, "col-v"),
)
ARROW = pa.schema(
    [
        ("day of flight", pa.string()),
        ("id", pa.int64()),
        ("plane", pa.struct([("a", pa.string()), ("b", pa.int64())])),
        ("legs", pa.list_(pa.struct([("to", pa.string())]))),
        ("prices", pa.map_(pa.string(), pa.struct([("eur", pa.int64())]))),
    ]
)
ROWS = [
    {
        "day of flight": ["mon", "tue", None][number % 3],
        "id": number,
        "plane": None if number == 2 else {"a": f"N{number}", "b": number * 10},
        "legs": None if number == 4 else [] if number == 3 else [{"to": "FRA"}, None, {"to": None}],
        "prices": None if number == 5 else [("full", {"eur": number}), ("none", None)],
    }
    for number in range(9)
]
EXPECTED = [row | {"none": None, "plane": row["plane"] and row["plane"] | {"v": None}} for row in ROWS]


def mapped_table(root, mode, **options) -> PlannedTable:
    return PlannedTable(
        root,
        *NESTED,
        features=["columnMapping", *options.pop("features", ())],
        configuration={"delta.columnMapping.mode": mode, **options.pop("configuration", {})},
        **options,
    )


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("sliced", [False, True])
def test_mapped_columns_read_back(tmp_path, mode, partitioned, sliced):
    table = mapped_table(tmp_path, mode, partition_columns=["day of flight"] if partitioned else [])
    rows = pa.Table.from_pylist(ROWS, ARROW)
    if sliced:
        padded = pa.concat_tables([rows.slice(0, 2), rows, rows.slice(5)])
        rows = padded.combine_chunks().slice(2, len(ROWS))
    written = table.write(rows.to_reader(max_chunksize=4) if sliced else rows)
    assert sorted(table.rows(), key=lambda row: row["id"]) == EXPECTED
    where = Comparison(ComparisonOperator.EQ, Column(("plane", "b")), Literal(70))
    assert [row["id"] for row in table.rows(predicate=where)] == [7]
    for add in written.adds:
        assert set(add.partition_values) == ({"col-p"} if partitioned else set())
        stats = json.loads(add.stats)
        assert set(stats["minValues"]) <= {"col-p", "col-i", "col-n"}
        assert set(stats["nullCount"]) == {"col-i", "col-n", "col-l", "col-m"} | (
            set() if partitioned else {"col-p"}
        )
        assert stats["nullCount"]["col-n"].keys() == {"a", "b"}
        assert stats["minValues"]["col-n"]["b"].startswith("N")
    physical = pq.read_schema(table.files()[0])
    names = ["col-i", "col-n", "col-l", "col-m"]
    assert physical.names == (names if partitioned else ["col-p", *names])
    assert physical.field("col-n").metadata[b"PARQUET:field_id"] == b"3"


def test_statistics_are_chosen_by_logical_names(tmp_path):
    table = mapped_table(tmp_path, "name", configuration={"delta.dataSkippingStatsColumns": "id,plane.b"})
    (add,) = table.write(pa.Table.from_pylist(ROWS, ARROW)).adds
    stats = json.loads(add.stats)
    assert stats["minValues"] == {"col-i": 0, "col-n": {"a": 0}}
    assert stats["maxValues"] == {"col-i": 8, "col-n": {"a": 80}}


def test_mode_counts_only_with_the_feature(tmp_path):
    table = PlannedTable(tmp_path, *NESTED, configuration={"delta.columnMapping.mode": "name"})
    (add,) = table.write(pa.Table.from_pylist(ROWS, ARROW)).adds
    assert "id" in json.loads(add.stats)["minValues"]


@pytest.mark.parametrize(
    ("features", "configuration", "expected"),
    [
        (["materializePartitionColumns"], {}, True),
        (["icebergCompatV1"], {"delta.enableIcebergCompatV1": "true"}, True),
        (["icebergCompatV2"], {"delta.enableIcebergCompatV2": "TRUE"}, True),
        (["icebergCompatV2"], {"delta.enableIcebergCompatV2": "false"}, False),
        ([], {"delta.enableIcebergCompatV2": "true"}, False),
    ],
)
def test_partition_columns_in_files(tmp_path, features, configuration, expected):
    table = mapped_table(
        tmp_path,
        "name",
        features=features,
        configuration=configuration,
        partition_columns=["id", "day of flight"],
    )
    table.write(pa.Table.from_pylist(ROWS, ARROW))
    assert sorted(table.rows(), key=lambda row: row["id"]) == EXPECTED
    assert len(table.files()) == 9
    for path in table.files():
        file = pq.ParquetFile(path).read()
        names = ["col-n", "col-l", "col-m"] + (["col-i", "col-p"] if expected else [])
        assert file.column_names == names
        if expected:
            day = file.column("col-p").to_pylist()[0]
            assert day == ROWS[file.column("col-i").to_pylist()[0]]["day of flight"]


TRACKED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-1",
}


def copied(numbers, ids, versions) -> RowBatch:
    columns = pa.table({"row id": [f"r{n}" for n in numbers], "p": [n % 2 for n in numbers]})
    hidden = MaterializedRowIds(
        row_ids=pa.array(ids, pa.int64()), row_commit_versions=pa.array(versions, pa.int64())
    )
    return RowBatch(columns=columns, hidden=hidden)


def test_copied_rows_keep_their_ids_through_partitions(tmp_path):
    table = PlannedTable(
        tmp_path,
        column("row id", "string"),
        column("p", "long"),
        features=["rowTracking", "domainMetadata"],
        partition_columns=["p"],
        configuration=TRACKED,
    )
    fresh = RowBatch(columns=pa.table({"row id": ["r5"], "p": [1]}))
    adds = table.copy(copied([0, 1, 2], [70, 71, 72], [1, 2, None]), fresh, copied([4], [74], [3]))
    assert [json.loads(add.stats)["nullCount"] for add in adds] == [{"row id": 0}] * 2
    found = {}
    for path in table.files():
        file = pq.ParquetFile(path).read()
        assert file.column_names == ["row id", "_row-id-1", "_row-version-1"]
        for row in file.to_pylist():
            found[row["row id"]] = (row["_row-id-1"], row["_row-version-1"])
    assert found == {"r0": (70, 1), "r1": (71, 2), "r2": (72, None), "r4": (74, 3), "r5": (None, None)}


@pytest.mark.parametrize(
    ("keep", "configuration"),
    [(False, TRACKED), (True, {}), (True, TRACKED | {"delta.enableRowTracking": "false"})],
)
def test_files_have_no_hidden_columns_without_stable_ids(tmp_path, keep, configuration):
    table = PlannedTable(
        tmp_path,
        column("row id", "string"),
        column("p", "long"),
        features=["rowTracking", "domainMetadata"],
        configuration=configuration,
    )
    table.copy(copied([0, 1], [70, 71], [1, 2]), keep_row_ids=keep)
    assert pq.read_schema(table.files()[0]).names == ["row id", "p"]


def test_stable_ids_need_the_names_of_their_columns(tmp_path):
    table = PlannedTable(
        tmp_path,
        column("a", "long"),
        features=["rowTracking"],
        configuration={"delta.enableRowTracking": "true"},
    )
    with pytest.raises(InvalidTableError, match="names of the hidden columns are not known"):
        table.write(pa.table({"a": [1]}))


def test_a_failed_write_of_a_mapped_table_leaves_no_file(tmp_path):
    table = mapped_table(tmp_path, "name", partition_columns=["day of flight"])
    good = pa.RecordBatch.from_pylist(ROWS, ARROW)

    def batches():
        yield good
        raise RuntimeError("the source is gone")

    with pytest.raises(InputDataError, match="the source is gone"):
        table.write(pa.RecordBatchReader.from_batches(ARROW, batches()), max_rows_per_file=1)
    assert table.files() == []


def test_codec_and_prefix_length_of_the_table(tmp_path):
    table = PlannedTable(
        tmp_path,
        column("s", "string"),
        configuration={
            "delta.parquet.compression.codec": "ZSTD",
            "delta.dataSkippingStringPrefixLength": "3",
        },
    )
    (add,) = table.write(pa.table({"s": ["abcdef", "abcxyz"]})).adds
    stats = json.loads(add.stats)
    assert (stats["minValues"]["s"], stats["maxValues"]["s"]) == ("abc", "abc\x7f")
    assert add.path.endswith(".zstd.parquet")
    assert pq.read_metadata(table.files()[0]).row_group(0).column(0).compression == "ZSTD"
    (other,) = table.write(pa.table({"s": ["a"]}), compression="gzip").adds
    assert other.path.endswith(".gz.parquet")
