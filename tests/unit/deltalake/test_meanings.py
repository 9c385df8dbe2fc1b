"""Calls of `delta_core.deltalake` that mean what they mean in the package: protocols, words, files, types."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import deltalake as theirs
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from delta_core import deltalake as ours
from delta_core.deltalake.exceptions import CommitFailedError, DeltaProtocolError, SchemaMismatchError
from delta_core.deltalake.fs import DeltaStorageHandler
from delta_core.errors import ConfigurationError, DeltaError, ExpressionError

ROWS = pa.table({"x": [1, 2, 3], "name": ["a", "b", "c"]})
TIMES = pa.table({"t": pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us"))})
CHANGES = {"delta.enableChangeDataFeed": "true"}


def _versions(library: Any, uri: Path, data: pa.Table, configuration: dict[str, str]) -> tuple[Any, ...]:
    library.write_deltalake(str(uri), data, configuration=configuration)
    found = library.DeltaTable(str(uri)).protocol()
    lists = (found.writer_features, found.reader_features)
    return (
        found.min_reader_version,
        found.min_writer_version,
        *(None if one is None else sorted(one) for one in lists),
    )


@pytest.mark.parametrize(
    ("data", "configuration"),
    [(ROWS, {}), (ROWS, CHANGES), (TIMES, {}), (TIMES, {"delta.appendOnly": "true"})],
    ids=["plain", "change data", "without a time zone", "append-only"],
)
def test_new_tables_have_the_versions_of_the_package(
    tmp_path: Path, data: pa.Table, configuration: dict[str, str]
) -> None:
    expected = _versions(theirs, tmp_path / "theirs", data, configuration)
    assert _versions(ours, tmp_path / "ours", data, configuration) == expected


def test_a_property_raises_the_version_that_implies_its_feature(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)
    table.alter.set_table_properties(CHANGES)
    assert table.protocol().min_writer_version == 4
    table.alter.add_constraint({"positive": "x > 0"})
    assert table.metadata().configuration["delta.constraints.positive"] == "x > 0"
    table.alter.set_table_name("rides")
    assert table.history(1)[0]["operation"] == "UPDATE TABLE METADATA"


def test_messages_begin_with_the_words_of_the_package(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path / "t", ROWS, configuration={"delta.appendOnly": "true"})
    table = ours.DeltaTable(tmp_path / "t")
    table.alter.add_constraint({"positive": "x > 0"})
    cases: list[tuple[type[Exception], str, Any]] = [
        (CommitFailedError, "The transaction includes Remove action", lambda: table.delete("x = 1")),
        (ExpressionError, "No field named y.", lambda: table.to_batches(filters="y = 1")),
        (
            SchemaMismatchError,
            "Cannot cast schema, number of fields does not match.",
            lambda: ours.write_deltalake(table, pa.table({"z": [1]}), mode="append"),
        ),
        (
            DeltaProtocolError,
            "Invalid data found: 1 rows failed validation check.",
            lambda: ours.write_deltalake(table, pa.table({"x": [-1]}), mode="append"),
        ),
        (
            DeltaError,
            "Generic error: Specified table partitioning does not match table partitioning: "
            'expected: [], got: ["x"]. ',
            lambda: ours.write_deltalake(table, ROWS, mode="append", partition_by=["x"]),
        ),
        (
            ConfigurationError,
            'Invalid partition filter found: ("x", "=>", "3").',
            lambda: table.file_uris(file_pruning_predicate=[("x", "=>", "3")]),
        ),
        (ConfigurationError, "The column 'x' allows nulls", lambda: table.alter.drop_column_not_null("x")),
    ]
    for kind, words, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value).startswith(words)
        assert str(caught.value).count(words) == 1


def test_an_encoding_of_one_column_leaves_the_dictionaries_of_others(tmp_path: Path) -> None:
    data = pa.table({"x": list(range(100)), "y": [1] * 100, "s": [{"z": "a"}] * 100})
    column = ours.ColumnProperties(encoding="DELTA_BINARY_PACKED")
    ours.write_deltalake(
        tmp_path, data, writer_properties=ours.WriterProperties(column_properties={"x": column})
    )
    group = pq.read_metadata(ours.DeltaTable(tmp_path).file_uris()[0]).row_group(0)
    found = {group.column(i).path_in_schema: group.column(i).encodings for i in range(3)}
    assert "DELTA_BINARY_PACKED" in found["x"]
    assert "RLE_DICTIONARY" not in found["x"]
    assert "RLE_DICTIONARY" in found["y"]
    assert "RLE_DICTIONARY" in found["s.z"]


def test_optimize_takes_writer_properties_and_commits_each_partition(tmp_path: Path) -> None:
    for _ in range(2):
        ours.write_deltalake(tmp_path, ROWS, mode="append", partition_by=["name"])
    table = ours.DeltaTable(tmp_path)
    properties = ours.WriterProperties(compression="GZIP", max_row_group_size=1)
    metrics = table.optimize.compact(writer_properties=properties, min_commit_interval=0)
    assert (table.version(), metrics["numFilesAdded"], metrics["maxBinSpanFiles"]) == (4, 3, 2)
    assert (metrics["numFilesRemoved"], metrics["totalFilesSkipped"]) == (6, 0)
    metrics = table.optimize.z_order(["x"], writer_properties=properties)
    assert (table.version(), metrics["plannerStrategy"]) == (5, "zOrder")
    footer = pq.read_metadata(table.file_uris()[0])
    assert (footer.row_group(0).column(0).compression, footer.num_row_groups) == ("GZIP", 2)


def test_changes_have_the_recorded_times(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS, configuration=CHANGES)
    table = ours.DeltaTable(tmp_path)
    table.delete("x = 1")
    recorded = {entry["version"]: entry["timestamp"] for entry in table.history()}
    rows = pa.table(table.load_cdf(columns=["x", "_commit_timestamp", "_commit_version"]))
    assert rows.schema.field("_commit_timestamp").type == pa.timestamp("ms")
    times = rows["_commit_timestamp"].cast(pa.int64()).to_pylist()
    assert times == [recorded[version] for version in rows["_commit_version"].to_pylist()]
    assert pa.table(table.load_cdf(columns=["x"])).schema.names == ["x"]


def test_merged_schemas_cast_the_data(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    new = pa.table({"x": ["4"], "more": [1.5]})
    ours.write_deltalake(tmp_path, new, mode="append", schema_mode="merge")
    rows = ours.DeltaTable(tmp_path).to_pyarrow_table(filters=[("x", "=", 4)])
    assert rows.to_pylist() == [{"x": 4, "name": None, "more": 1.5}]
    for value, words in (
        ("five", "string 'five' to value of Int64 type"),
        (2.5, "Can't cast value 2.5 to type"),
    ):
        with pytest.raises(SchemaMismatchError, match=words):
            ours.write_deltalake(tmp_path, pa.table({"x": [value]}), mode="append", schema_mode="merge")
    generated = pa.field("g", pa.int64(), metadata={"delta.generationExpression": "x"})
    data = pa.table([[1], [1]], schema=pa.schema([pa.field("x", pa.int64()), generated]))
    with pytest.raises(SchemaMismatchError, match="cannot have generated expressions"):
        ours.write_deltalake(tmp_path, data, mode="append", schema_mode="merge")


def test_checkpoints_follow_versions_4_and_9_at_an_interval_of_5(tmp_path: Path) -> None:
    for _ in range(6):
        ours.write_deltalake(tmp_path, ROWS, mode="append", configuration={"delta.checkpointInterval": "5"})
    found = sorted(path.name[:20] for path in (tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert found == ["00000000000000000004"]


def test_names_with_spaces_are_mapped_and_queried(tmp_path: Path) -> None:
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("sold items", pa.string_view())]
    data = pa.table([[1, 2], ["a", "b"]], schema=pa.schema(fields))
    ours.write_deltalake(tmp_path, data)
    table = ours.DeltaTable(tmp_path)
    assert table.metadata().configuration["delta.columnMapping.mode"] == "name"
    builder = ours.QueryBuilder().register("t", table)
    rows = pa.table(builder.execute('select id, "sold items" from t order by `sold items` desc'))
    assert rows.schema == data.schema
    assert rows["sold items"].to_pylist() == ["b", "a"]
    joined = pa.table(builder.execute("select a.id from t a left join t b on a.id = b.id + 1"))
    assert joined.schema.field("id").nullable


def test_a_handler_trusts_the_sizes_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    known = pafs.PyFileSystem(DeltaStorageHandler(str(tmp_path), known_sizes={"f": 4}))
    with known.open_input_file("f") as file:
        assert (file.size(), file.read(), file.tell()) == (4, b"0123", 4)
        file.seek(1)
        assert file.read(2) == b"12"
    handler = DeltaStorageHandler(str(tmp_path), options={"max_buffer_size": "1"})
    with pytest.warns(UserWarning, match="max_buffer_size"):
        handler.open_output_stream("new").close()
    modified = handler.get_file_info(["f"])[0].mtime_ns
    assert modified == (tmp_path / "f").stat().st_mtime_ns


def test_a_source_row_without_a_clause_may_match_a_row_that_another_changes(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    source = pa.table({"x": [1, 1, 9, 9], "name": ["new", "idle", "n", "n"]})
    merger = ours.DeltaTable(tmp_path).merge(source, "s.x = t.x", source_alias="s", target_alias="t")
    merger.when_matched_update({"name": "s.name"}, "s.name = 'new'").when_not_matched_insert_all().execute()
    rows = ours.DeltaTable(tmp_path).to_pyarrow_table().sort_by("x").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, "new"), (2, "b"), (3, "c"), (9, "n"), (9, "n")]


def test_numbers_in_structs_are_cast_by_a_merge(tmp_path: Path) -> None:
    ours.write_deltalake(
        tmp_path, pa.table({"x": [1], "s": pa.array([{"a": 1}], pa.struct([("a", pa.int16())]))})
    )
    table = ours.DeltaTable(tmp_path)

    def merged(value: int) -> None:
        source = pa.table({"x": [value], "s": pa.array([{"a": value}], pa.struct([("a", pa.int64())]))})
        merger = table.merge(source, "s.x = t.x", source_alias="s", target_alias="t")
        merger.when_not_matched_insert_all().execute()

    merged(7)
    assert {"x": 7, "s": {"a": 7}} in table.to_pyarrow_table().to_pylist()
    with pytest.raises(DeltaError):
        merged(1 << 20)


@pytest.mark.parametrize(
    "predicate",
    ["name = 'it''s'", "name = 'x''''y'", "name LIKE 'it''%'", "name IN ('it''s', '')", r"""name = 'a\b'"""],
)
def test_strings_and_names_are_quoted_as_in_the_package(tmp_path: Path, predicate: str) -> None:
    rows = pa.table({"x": [1, 2, 3, 4], "name": ["it's", "x''y", "a\\b", None]})
    found = []
    for library in (theirs, ours):
        uri = str(tmp_path / library.__name__)
        library.write_deltalake(uri, rows)
        library.DeltaTable(uri).update({'"name"': "'O''Brien'"}, predicate=predicate)
        found.append(library.DeltaTable(uri).to_pandas().sort_values("x")["name"].fillna("").tolist())
    assert found[0] == found[1]
    assert found[1].count("O'Brien") == 1


def test_other_types_are_cast_when_schemas_are_merged(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, pa.table({"x": pa.array([1], pa.int32())}))
    with pytest.raises(SchemaMismatchError, match="Cannot cast field x from Int64 to Int32"):
        ours.write_deltalake(tmp_path, pa.table({"x": [2]}), mode="append")
    ours.write_deltalake(tmp_path, pa.table({"x": [2]}), mode="append", schema_mode="merge")
    assert sorted(ours.DeltaTable(tmp_path).to_pandas()["x"]) == [1, 2]


def test_filters_order_nan_after_all_numbers(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, pa.table({"x": [1.0, float("nan"), None]}))
    table = ours.DeltaTable(tmp_path)
    assert len(table.to_pandas(filters=[("x", ">", 5)])) == 1
    assert len(table.to_pandas(filters=[("x", "=", None)])) == 1
