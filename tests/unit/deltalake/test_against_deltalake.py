"""The calls of the `deltalake` package do the same here as there, on tables of the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

from delta_core import deltalake as ours
from delta_core.deltalake import exceptions, schema, transaction
from delta_core.errors import ConfigurationError, DeltaError

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "day": ["a", "a", "b", None],
        "amount": pa.array([1.5, 2.5, None, 4.5]),
    }
)


def tables(place: Path, **arguments: Any) -> tuple[Any, Any]:
    """The same rows, written by both packages."""
    deltalake.write_deltalake(place / "theirs", ROWS, **arguments)
    ours.write_deltalake(place / "ours", ROWS, **arguments)
    return deltalake.DeltaTable(place / "theirs"), ours.DeltaTable(place / "ours")


def ids(table: Any) -> list[int]:
    return sorted(table.to_pyarrow_table(columns=["id"]).column("id").to_pylist())


FILTERS: list[Any] = [
    [("id", ">", 1)],
    [("id", "in", [1, 3])],
    [("day", "=", "a"), ("id", "!=", 2)],
    [[("id", "=", 1)], [("amount", ">", 3)]],
    [("day", "not in", ["b"])],
    [("amount", "not in", [1.5])],
    [("day", "!=", "a")],
    pa.compute.field("id") >= 3,
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_of_tuples_and_expressions(tmp_path: Path, filters: Any) -> None:
    theirs, mine = tables(tmp_path, partition_by=["day"])
    wanted = sorted(theirs.to_pyarrow_table(filters=filters)["id"].to_pylist())
    assert sorted(mine.to_pyarrow_table(filters=filters)["id"].to_pylist()) == wanted
    assert len(mine.to_pandas(filters=filters)) == len(wanted)


def test_partitions_counts_and_files(tmp_path: Path) -> None:
    theirs, mine = tables(tmp_path, partition_by=["day"])
    assert sorted(map(str, mine.partitions())) == sorted(map(str, theirs.partitions()))
    assert mine.count() == theirs.count() == 4
    assert len(mine.file_uris(file_pruning_predicate=[("day", "=", "a")])) == 1
    assert [Path(uri).exists() for uri in mine.file_uris()] == [True, True, True]
    assert mine.metadata().partition_columns == theirs.metadata().partition_columns
    assert mine.protocol()[:2] == theirs.protocol()[:2]


def test_a_frame_reads_the_table_by_the_stream_of_arrow(tmp_path: Path) -> None:
    _, mine = tables(tmp_path)
    assert pa.table(mine).sort_by("id").equals(ROWS.cast(pa.table(mine).schema).sort_by("id"))
    assert isinstance(mine.to_batches(), pa.RecordBatchReader)
    assert mine.to_batches(columns=["id"]).read_all()["id"].to_pylist() == [1, 2, 3, 4]


def test_delete_and_update_return_the_same_counts(tmp_path: Path) -> None:
    theirs, mine = tables(tmp_path)
    for change in (
        lambda table: table.delete("id = 1"),
        lambda table: table.update({"amount": "amount + 1"}, predicate='"id" > 2'),
        lambda table: table.update(new_values={"day": "z"}, predicate="day = 'a'"),
    ):
        wanted, found = change(theirs), change(mine)
        timeless = {name: value for name, value in wanted.items() if not name.endswith("_ms")}
        assert {name: found[name] for name in timeless} == timeless
    assert mine.to_pandas().sort_values("id").equals(mine.to_pandas().sort_values("id"))
    assert [entry["operation"] for entry in mine.history()] == [e["operation"] for e in theirs.history()]
    assert [entry["version"] for entry in mine.history(2)] == [3, 2]


def test_overwriting_a_part_compares_numbers_with_strings_as_datafusion(tmp_path: Path) -> None:
    rows = pa.table({"p": ["1", "2"], "v": [1, 2]})
    for package, place in ((deltalake, tmp_path / "theirs"), (ours, tmp_path / "ours")):
        package.write_deltalake(place, rows)
        new = pa.table({"p": ["1"], "v": [9]})
        package.write_deltalake(place, new, mode="overwrite", predicate="p = 1")
        found = package.DeltaTable(place).to_pyarrow_table().sort_by("p").to_pydict()
        assert found == {"p": ["1", "2"], "v": [9, 2]}


def test_optimize_restore_and_vacuum(tmp_path: Path) -> None:
    theirs, mine = tables(tmp_path)
    for package, table, place in ((deltalake, theirs, "theirs"), (ours, mine, "ours")):
        package.write_deltalake(tmp_path / place, ROWS, mode="append")
        table.update_incremental()
    counts = ("numFilesAdded", "numFilesRemoved", "partitionsOptimized", "totalConsideredFiles")
    wanted, found = theirs.optimize.compact(), mine.optimize.compact(max_concurrent_tasks=1)
    assert [found[name] for name in counts] == [wanted[name] for name in counts]
    assert isinstance(found["filesAdded"], str)
    assert mine.optimize.z_order(["id"])["numFilesAdded"] == 1
    assert mine.restore(1) == theirs.restore(1)
    options: dict[str, Any] = {"retention_hours": 0, "enforce_retention_duration": False}
    assert len(mine.vacuum(dry_run=True, **options)) == 2
    kept = mine.vacuum(dry_run=True, keep_versions=[2], **options)
    assert len(kept) == 1
    (tmp_path / "ours" / "stray.parquet").write_bytes(b"x")
    assert "stray.parquet" not in mine.vacuum(dry_run=True, **options)
    assert "stray.parquet" in mine.vacuum(dry_run=True, full=True, **options)
    with pytest.raises(DeltaError, match="168 hours"):
        mine.vacuum(retention_hours=1)


def test_properties_of_commits_are_in_the_history(tmp_path: Path) -> None:
    properties = ours.CommitProperties(
        custom_metadata={"userName": "Jane", "attempt": 3, "operationParameters": {"extra": True}},
        app_transactions=[ours.Transaction("app", 7)],
    )
    place = tmp_path / "t"
    for _ in range(2):
        ours.write_deltalake(place, ROWS, mode="append", commit_properties=properties)
    table = ours.DeltaTable(place)
    entry = table.history(1)[0]
    assert (entry["userName"], entry["attempt"]) == ("Jane", 3)
    assert entry["operationParameters"]["extra"] == "true"
    assert table.transaction_version("app") == 7
    assert table.count() == 8, "app transactions are recorded; they do not skip the second write"
    for fields in ({"timestamp": 1}, {"readVersion": -1}, {"x": float("nan")}, {"txnId": "x"}):
        with pytest.raises(ValueError, match=r"custom_metadata|readVersion"):
            ours.write_deltalake(
                place, ROWS, mode="append", commit_properties=ours.CommitProperties(custom_metadata=fields)
            )


@pytest.mark.parametrize("package", [deltalake, ours], ids=["theirs", "ours"])
def test_errors_have_the_classes_of_the_package(tmp_path: Path, package: Any) -> None:
    errors: Any = exceptions if package is ours else __import__("deltalake.exceptions").exceptions
    place = tmp_path / "t"
    package.write_deltalake(place, ROWS)
    table = package.DeltaTable(place)
    cases: list[tuple[type[Exception], Callable[[], Any]]] = [
        (errors.TableNotFoundError, lambda: package.DeltaTable(tmp_path / "none")),
        (
            errors.SchemaMismatchError,
            lambda: package.write_deltalake(place, pa.table({"z": [1]}), mode="append"),
        ),
        (errors.DeltaError, lambda: package.write_deltalake(place, ROWS)),
        (errors.DeltaError, lambda: table.delete("nothing = 1")),
        (ValueError, lambda: table.update()),
        (TypeError, lambda: table.update({"id": 1})),
        (TypeError, lambda: table.load_as_version(1.5)),
        (ValueError, lambda: table.load_as_version("tomorrow")),
        (ValueError, lambda: package.write_deltalake(3, ROWS)),
        (ValueError, lambda: package.WriterProperties(compression="no")),
        (ValueError, lambda: package.Field("a", "no type")),
    ]
    for number, (kind, call) in enumerate(cases):
        with pytest.raises(kind):
            call()
        assert number < len(cases)


def test_schemas_are_those_of_the_package() -> None:
    fields = [
        ("a", "long", True),
        ("b", "decimal(10,2)", False),
        ("c", "timestamp_ntz", True),
    ]
    theirs = deltalake.Schema([deltalake.Field(n, t, nullable=x) for n, t, x in fields])
    mine = ours.Schema([ours.Field(n, t, nullable=x) for n, t, x in fields])
    assert mine.to_json() == theirs.to_json()
    assert repr(mine) == repr(theirs)
    assert pa.schema(mine) == pa.schema(theirs)
    assert ours.Schema.from_arrow(theirs) == mine == ours.Schema.from_json(theirs.to_json())
    nested = schema.StructType([ours.Field("x", schema.ArrayType("string", False))])
    assert schema.StructType.from_json(nested.to_json()) == nested
    assert schema.MapType("string", nested).value_type == nested
    with pytest.raises(TypeError):
        schema.ArrayType.from_arrow(pa.int64())


def test_the_other_package_reads_what_every_call_leaves(tmp_path: Path) -> None:
    place = tmp_path / "t"
    properties = ours.WriterProperties(
        compression="ZSTD",
        compression_level=3,
        max_row_group_size=2,
        column_properties={
            "id": ours.ColumnProperties(bloom_filter_properties=ours.BloomFilterProperties(True, 0.01, 100))
        },
    )
    table = ours.DeltaTable.create(
        place, ours.Schema.from_arrow(ROWS.schema), configuration={"delta.appendOnly": None}
    )
    ours.write_deltalake(table, ROWS, mode="append", writer_properties=properties)
    table.alter.add_columns(ours.Field("note", "string"))
    table.alter.set_column_metadata("note", {"comment": "of a person"})
    table.alter.add_constraint({"positive": "id > 0"})
    table.alter.drop_constraint("none", raise_if_not_exists=False)
    table.alter.set_table_name("n")
    table.create_checkpoint()
    theirs = deltalake.DeltaTable(place)
    assert ids(theirs) == ids(table) == [1, 2, 3, 4]
    assert theirs.metadata().name == "n"
    (file,) = table.file_uris()
    footer = pa.parquet.read_metadata(file)
    assert (footer.num_row_groups, footer.row_group(0).column(0).compression) == (2, "ZSTD")
    with pytest.raises(exceptions.DeltaProtocolError, match="positive"):
        ours.write_deltalake(table, ROWS.slice(0, 1).set_column(0, "id", pa.array([-1])), mode="append")


def test_files_that_were_written_elsewhere_are_committed(tmp_path: Path) -> None:
    place = tmp_path / "t"
    table = ours.DeltaTable.create(place, ROWS.schema)
    pa.parquet.write_table(ROWS, place / "own.parquet")
    size = (place / "own.parquet").stat().st_size
    add = transaction.AddAction("own.parquet", size, {}, 0, True, '{"numRecords":4}')
    table.create_write_transaction([add], mode="append", schema=ROWS.schema)
    assert ids(table) == [1, 2, 3, 4]
    table.generate()
    manifest = (place / "_symlink_format_manifest" / "manifest").read_text()
    assert manifest.endswith("/own.parquet\n")


def test_rows_of_deletion_vectors_are_right_everywhere(tmp_path: Path) -> None:
    place = tmp_path / "t"
    configuration = {"delta.enableDeletionVectors": "true"}
    ours.write_deltalake(place, ROWS, configuration=configuration)
    table = ours.DeltaTable(place)
    assert table.delete("id = 2")["num_deleted_rows"] == 1
    assert table.count() == 3
    assert sorted(table.to_pyarrow_dataset().to_table()["id"].to_pylist()) == [1, 3, 4]
    (row,) = pa.table(table.deletion_vectors()).to_pylist()
    assert row["selection_vector"] == [True, False, True, True]
    query = ours.QueryBuilder().register("t", table).execute("SELECT sum(id) AS total FROM t WHERE id > 1")
    assert pa.table(query)["total"].to_pylist() == [7]


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        ours.write_deltalake(tmp_path / "t", [])
    with pytest.raises(ConfigurationError):
        ours.WriterProperties(compression=[])  # type: ignore[arg-type]


def test_commit_arguments_by_position_are_deprecated(tmp_path: Path) -> None:
    _, mine = tables(tmp_path)
    commit = ours.CommitProperties(custom_metadata={"userName": "Jane"})
    with pytest.warns(DeprecationWarning, match="positionally"):
        mine.delete("id = 1", None, None, commit)
    assert mine.history(1)[0]["userName"] == "Jane"
    with pytest.raises(TypeError, match="multiple values"), pytest.warns(match="positionally"):
        mine.delete("id = 1", None, None, commit, commit_properties=commit)


def test_change_data_and_times(tmp_path: Path) -> None:
    place = tmp_path / "t"
    ours.write_deltalake(place, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    table = ours.DeltaTable(place)
    table.delete("id = 1")
    changes = pa.table(table.load_cdf(1))
    assert changes["_change_type"].to_pylist() == ["delete"]
    assert pa.table(table.load_cdf(9, allow_out_of_range=True)).num_rows == 0
    with pytest.raises(DeltaError, match="Invalid table version"):
        table.load_cdf(9)
    table.load_as_version("2001-01-01T00:00:00Z")
    assert table.version() == 0
    table.load_as_version("2999-01-01T00:00:00Z")
    assert table.version() == 1


def test_generation_expressions_in_the_metadata_of_columns(tmp_path: Path) -> None:
    generated = pa.field("twice", pa.int64(), metadata={"delta.generationExpression": "id * 2"})
    columns = pa.schema([pa.field("id", pa.int64()), generated])
    ours.write_deltalake(tmp_path / "t", pa.table({"id": [1], "twice": [2]}, schema=columns))
    ours.write_deltalake(tmp_path / "t", pa.table({"id": [2]}), mode="append")
    rows = ours.DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("id").to_pydict()
    assert rows == {"id": [1, 2], "twice": [2, 4]}
    with pytest.raises(exceptions.DeltaProtocolError, match="twice"):
        ours.write_deltalake(tmp_path / "u", pa.table({"id": [1], "twice": [3]}, schema=columns))


def test_features_raise_the_protocol_only_when_allowed(tmp_path: Path) -> None:
    table = ours.DeltaTable.create(tmp_path / "t", ROWS.schema)
    with pytest.raises(exceptions.DeltaProtocolError, match="allow_protocol_versions_increase"):
        table.alter.add_feature(ours.TableFeatures.DeletionVectors)
    table.alter.add_feature(
        [ours.TableFeatures.DeletionVectors, ours.TableFeatures.AppendOnly],
        allow_protocol_versions_increase=True,
    )
    assert "deletionVectors" in (table.protocol().writer_features or [])
    assert table.history(1)[0]["operation"] == "ADD FEATURE"
