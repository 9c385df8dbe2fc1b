"""Tables that are clustered: created, altered, written (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherReader

from delta_core import DeltaTable, write_deltalake
from delta_core.dml.definition.clustering import cluster_by
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    InvalidTableError,
    SchemaError,
    SchemaEvolutionError,
    SchemaMismatchError,
    UnsupportedTableFeatureError,
)
from delta_core.snapshot.table_definition import clustering_of

SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.string()), ("c", pa.binary()), ("s", pa.struct([("x", pa.int32())]))]
)


def rows(*values: int) -> pa.Table:
    return pa.table(
        {
            "a": values,
            "b": [str(value) for value in values],
            "c": [b"c"] * len(values),
            "s": [{"x": value} for value in values],
        },
        schema=SCHEMA,
    )


def columns_of(table: DeltaTable) -> list[list[str]]:
    return json.loads(table.snapshot.domain_metadata["delta.clustering"].configuration)["clusteringColumns"]


def stats_of(table: DeltaTable) -> list[dict]:
    batches = table.snapshot.files.batches(["stats"])
    return [json.loads(text) for batch in batches for text in batch["stats"].to_pylist()]


def test_created_with_the_domain_and_its_features(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, SCHEMA, cluster_by=["B", ["s", "x"]])
    assert columns_of(table) == [["b"], ["s", "x"]]
    assert table.protocol().writer_features >= {"clustering", "domainMetadata"}
    assert table.protocol().min_writer_version == 7
    write_deltalake(table, rows(1, 2), mode="append")
    assert OtherReader(tmp_path).to_pyarrow_table().num_rows == 2


def test_clustering_columns_have_statistics_beyond_those_that_are_indexed(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path,
        SCHEMA,
        cluster_by=[["s", "x"]],
        configuration={"delta.dataSkippingNumIndexedCols": "1"},
    )
    write_deltalake(table, rows(1, 2), mode="append")
    write_deltalake(table, rows(3), mode="append")
    table = DeltaTable(tmp_path)
    table.update({"b": "'n'"}, predicate="a = 1")
    for stats in stats_of(DeltaTable(tmp_path)):
        assert set(stats["nullCount"]) == {"a", "s"}
        assert "x" in stats["minValues"]["s"]


@pytest.mark.parametrize("column", [1, None, ["a", 2], {"a"}])
def test_what_names_no_column_is_refused(tmp_path: Path, column: object) -> None:
    with pytest.raises(SchemaError, match="is not a clustering column"):
        DeltaTable.create(tmp_path, SCHEMA, cluster_by=[column])  # type: ignore[list-item]


@pytest.mark.parametrize(("found", "instead"), [('[[\\"a\\"]]', '[[\\"gone\\"]]'), ('[[\\"a\\"]]', "7")])
def test_a_domain_that_is_wrong_is_named_and_can_be_mended(tmp_path: Path, found: str, instead: str) -> None:
    table = DeltaTable.create(tmp_path, SCHEMA, cluster_by=["a"])
    first = tmp_path / "_delta_log" / f"{0:020}.json"
    assert found in first.read_text()
    first.write_text(first.read_text().replace(found, instead))
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table().num_rows == 0
    with pytest.raises(InvalidTableError, match=r"alter\.cluster_by"):
        table.optimize.cluster()
    table.alter.cluster_by(["b"])
    assert table.detail()["clustering_columns"] == ["b"]
    write_deltalake(tmp_path, rows(1), mode="append")


def test_a_new_schema_without_a_clustering_column_says_what_it_lacks(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1), cluster_by="a")
    with pytest.raises(SchemaError, match="clustered by a, which the new schema does not allow"):
        write_deltalake(tmp_path, pa.table({"b": ["x"]}), mode="overwrite", schema_mode="overwrite")


def test_detail_names_a_column_that_is_not_there(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, SCHEMA, cluster_by=["a"])
    first = tmp_path / "_delta_log" / f"{0:020}.json"
    first.write_text(first.read_text().replace('[[\\"a\\"]]', '[[\\"gone\\"]]'))
    assert DeltaTable(tmp_path).detail()["clustering_columns"] == ["gone"]


def test_a_write_creates_a_clustered_table_and_keeps_its_columns(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1), cluster_by=["a", ("s", "x")])
    assert columns_of(DeltaTable(tmp_path)) == [["a"], ["s", "x"]]
    write_deltalake(tmp_path, rows(2), mode="append", cluster_by=["A", ["s", "x"]])
    before = DeltaTable(tmp_path).version()
    for options in ({"mode": "append"}, {"mode": "overwrite", "schema_mode": "overwrite"}):
        with pytest.raises(SchemaMismatchError, match=r"clustered by \(a, s\.x\), not by \(b\)"):
            write_deltalake(tmp_path, rows(3), cluster_by="b", **options)
    with pytest.raises(SchemaError, match="partitioned table cannot be clustered"):
        write_deltalake(tmp_path / "other", rows(1), cluster_by="a", partition_by="b")
    assert DeltaTable(tmp_path).version() == before
    write_deltalake(tmp_path / "plain", rows(1))
    with pytest.raises(SchemaMismatchError, match="clustered by nothing"):
        write_deltalake(tmp_path / "plain", rows(1), mode="append", cluster_by="a")


def test_mapped_clustering_columns_have_statistics_whoever_writes(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path,
        SCHEMA,
        cluster_by=["a", ["s", "x"]],
        configuration={
            "delta.columnMapping.mode": "name",
            "delta.dataSkippingNumIndexedCols": "0",
            "delta.enableChangeDataFeed": "true",
        },
    )
    write_deltalake(table, rows(1, 2, 3), mode="append")
    table.update({"b": "'n'"}, predicate="a = 1")
    write_deltalake(table, rows(7), mode="overwrite", predicate="a = 2 or a = 7")
    for step in (table.optimize.compact, lambda: table.optimize.cluster(full=True)):
        for stats in stats_of(DeltaTable(tmp_path)):
            assert len(stats["minValues"]) == len(stats["nullCount"]) == 2
        step()
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["a"].to_pylist()) == [1, 3, 7]


def test_mapped_columns_are_named_physically(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path, SCHEMA, cluster_by=["b"], configuration={"delta.columnMapping.mode": "name"}
    )
    ((physical,),) = columns_of(table)
    assert physical.startswith("col-")
    table.alter.rename_column("b", "other")
    assert columns_of(table) == [[physical]]
    found = clustering_of(table.snapshot)
    assert found is not None
    assert found.logical(table.snapshot.schema) == (("other",),)
    with pytest.raises(SchemaEvolutionError, match="clustering"):
        table.alter.drop_columns("other")


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["c"], SchemaError),
        (["s"], SchemaError),
        (["nope"], SchemaError),
        (["a", "A"], SchemaError),
        (["a"] * 5, SchemaError),
    ],
)
def test_columns_that_do_not_do(tmp_path: Path, columns: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        DeltaTable.create(tmp_path / "new", SCHEMA, cluster_by=columns)
    table = DeltaTable.create(tmp_path / "old", SCHEMA)
    with pytest.raises(error):
        table.alter.cluster_by(columns)
    assert table.version() == 0


def test_partitioned_tables_are_not_clustered(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="partitioned"):
        DeltaTable.create(tmp_path / "new", SCHEMA, partition_by=["b"], cluster_by=["a"])
    table = DeltaTable.create(tmp_path / "old", SCHEMA, partition_by=["b"])
    with pytest.raises(SchemaError, match="partitioned"):
        table.alter.cluster_by("a")
    clustered = DeltaTable.create(tmp_path / "clustered", SCHEMA, cluster_by=["a"])
    with pytest.raises(SchemaError, match="partitioned"):
        write_deltalake(clustered, rows(1), mode="overwrite", schema_mode="overwrite", partition_by=["b"])


def test_a_list_of_statistics_names_every_clustering_column(tmp_path: Path) -> None:
    listed = {"delta.dataSkippingStatsColumns": "a, s"}
    with pytest.raises(ConfigurationError, match="clustered by b"):
        DeltaTable.create(tmp_path / "new", SCHEMA, cluster_by=["b"], configuration=listed)
    table = DeltaTable.create(tmp_path / "old", SCHEMA, cluster_by=[["s", "x"]], configuration=listed)
    with pytest.raises(ConfigurationError, match="clustered by b"):
        table.alter.cluster_by("b")
    with pytest.raises(ConfigurationError, match=r"clustered by s\.x"):
        table.alter.set_properties({"delta.dataSkippingStatsColumns": "a"})


def test_altered_to_others_and_to_nothing(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, SCHEMA)
    write_deltalake(table, rows(1), mode="append")
    table = DeltaTable(tmp_path)
    table.alter.cluster_by(["a", "b"])
    assert columns_of(table) == [["a"], ["b"]]
    table.alter.cluster_by(None)
    assert columns_of(table) == []
    assert "clustering" in (table.protocol().writer_features or ())
    assert table.history(1)[0].commit_info.operation == "CLUSTER BY"
    table.alter.drop_feature("clustering")


def test_a_file_without_statistics_is_in_the_way(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, SCHEMA, configuration={"delta.dataSkippingNumIndexedCols": "1"})
    write_deltalake(table, rows(1), mode="append")
    table = DeltaTable(tmp_path)
    with pytest.raises(ConfigurationError, match="no statistics"):
        table.alter.cluster_by("b")
    table.alter.cluster_by("a")


def test_a_text_is_one_column(tmp_path: Path) -> None:
    schema = pa.schema([("day", pa.date32())])
    assert columns_of(DeltaTable.create(tmp_path, schema, cluster_by="day")) == [["day"]]


def test_the_feature_is_not_turned_on_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableFeatureError, match="cluster_by"):
        DeltaTable.create(tmp_path, SCHEMA, configuration={"delta.feature.clustering": "supported"})


def test_concurrent_changes_conflict(tmp_path: Path) -> None:
    first = DeltaTable.create(tmp_path, SCHEMA)
    stale = DeltaTable(tmp_path).snapshot
    first.alter.cluster_by("a")
    with pytest.raises(ConcurrentModificationError):
        cluster_by(stale, ["b"])


def test_overwriting_keeps_the_columns_or_is_refused(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path, SCHEMA, cluster_by=["b"], configuration={"delta.columnMapping.mode": "name"}
    )
    write_deltalake(table, rows(1), mode="overwrite")
    write_deltalake(table, rows(1).select(["b", "a"]), mode="overwrite", schema_mode="overwrite")
    table = DeltaTable(tmp_path)
    found = clustering_of(table.snapshot)
    assert found is not None
    assert found.logical(table.snapshot.schema) == (("b",),)
    with pytest.raises(SchemaError, match="clustered by b, which the new schema does not allow"):
        write_deltalake(table, rows(1).select(["a"]), mode="overwrite", schema_mode="overwrite")


def test_restore_brings_the_old_columns_back(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, SCHEMA, cluster_by=["a"])
    table.alter.cluster_by("b")
    table.restore(0)
    assert columns_of(DeltaTable(tmp_path)) == [["a"]]
