"""delta-spark's `DeltaTable` API: results in its schemas, and its kinds of errors."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, ParseException, UnsupportedOperationException
from pyspark.sql import functions as fn
from pyspark.sql.types import DateType, IntegerType, LongType, StringType, StructField, StructType

import spark_jobs
from delta_core.errors import DeltaError, RetentionTooShortError, SchemaMismatchError, TableNotFoundError
from spark_jobs import DeltaTable, IdentityGenerator
from spark_jobs.spark_errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ColumnTypeError,
    FeatureNotPresentError,
    HistoryTruncationError,
    IdentityTypeError,
    NamedTableExistsError,
    NamedTableNotFoundError,
    PartitionPredicateError,
    PartitionZOrderError,
    TimestampError,
    UnknownFeatureDropError,
    UnknownFeatureError,
)
from tests.support.spark import collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTable:
    """A table of two versions in two partitions."""
    uri = str(tmp_path / "t")
    for numbers in ((0, 4), (4, 8)):
        rows = spark.range(*numbers, 1, 1).selectExpr("id", "concat('n', id) name", "id % 2 part")
        spark_jobs.write(rows, uri, mode="append", partition_by=["part"])
    return DeltaTable.forPath(spark, uri, {"fs.some.setting": "x"})


def ids(table: DeltaTable) -> list[int]:
    return sorted(row["id"] for row in table.toDF().select("id").collect())


def test_a_path_without_a_table_is_an_analysis_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="is not a Delta table") as caught:
        DeltaTable.forPath(spark, str(tmp_path / "nothing"))
    assert isinstance(caught.value, TableNotFoundError)
    assert caught.value.getCondition() == "DELTA_MISSING_DELTA_TABLE"


@pytest.mark.slow
def test_rows_change_by_strings_and_columns(table: DeltaTable) -> None:
    table.delete("id = 1")
    table.delete(fn.col("id") == fn.lit(2))
    table.update("id > 5", {"name": "upper(name)"})
    table.update(fn.col("id") == 3, {"name": fn.concat(fn.col("name"), fn.lit("!"))})
    aliased = table.alias("t")
    aliased.update("t.id = 4", {"t.name": "concat(t.name, '?')"})
    aliased.delete("t.id = 5")
    found = {row["id"]: row["name"] for row in collected(table.toDF())}
    assert found == {0: "n0", 3: "n3!", 4: "n4?", 6: "N6", 7: "N7"}
    assert aliased.toDF().select("t.id").count() == 5
    result = spark_jobs.last_result(table.detail().first()["location"])
    assert result is not None
    assert result.output["metrics"]["numDeletedRows"] == 1
    table.update(set={"name": "'same'"})
    table.delete()
    assert ids(table) == []


def test_a_merge_answers_with_its_counts(spark: SparkSession, table: DeltaTable) -> None:
    source = spark.range(6, 10).selectExpr("id AS k", "'new' AS v")
    merge = table.alias("t").merge(source, "t.id = k")
    merge = merge.whenMatchedUpdate(set={"t.name": fn.col("v")})
    merge = merge.whenNotMatchedInsert(values={"t.id": "k", "name": "v", "part": "0"})
    changed = merge.whenNotMatchedBySourceDelete(fn.expr("t.id < 2")).execute()
    assert collected(changed) == [
        {"num_affected_rows": 6, "num_updated_rows": 2, "num_deleted_rows": 2, "num_inserted_rows": 2}
    ]
    assert not any(field.nullable for field in changed.schema.fields)
    assert ids(table) == [2, 3, 4, 5, 6, 7, 8, 9]
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        extra = spark.range(20, 21).selectExpr("id", "'x' AS extra", "'n' AS name", "0L AS part")
        table.alias("t").merge(extra.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert table.toDF().columns == ["id", "name", "part", "extra"]


def test_wrong_arguments_are_delta_sparks_errors(spark: SparkSession, table: DeltaTable) -> None:
    any_table: Any = table
    merge: Any = table.merge(spark.range(1), "id = 1")
    for wrong in (
        lambda: any_table.delete(1),
        lambda: any_table.update(1, {"a": "b"}),
        lambda: any_table.update(set=1),
        lambda: any_table.update(set={1: "1"}),
        lambda: any_table.update(set={"a": 1}),
        lambda: any_table.merge(1, "a"),
        lambda: any_table.merge(spark.range(1), 1),
        lambda: merge.whenMatchedDelete(1),
        lambda: merge.whenMatchedUpdate(set=[]),
        lambda: any_table.optimize().executeZOrderBy(1),
        lambda: DeltaTable.forPath(spark, "x", {"a": 1}),  # type: ignore[dict-item]
    ):
        with pytest.raises(TypeError) as failed:
            wrong()
        assert isinstance(failed.value, ArgumentTypeError)
    for wrong in (
        lambda: any_table.update("a"),
        lambda: any_table.merge(None, "a"),
        lambda: any_table.merge(spark.range(1), None),
        lambda: merge.whenMatchedUpdate("a"),
        lambda: merge.whenNotMatchedInsert("a"),
        lambda: any_table.restoreToVersion("0"),
        lambda: any_table.restoreToTimestamp(1),
        lambda: any_table.clone(1),
        lambda: any_table.clone("x", properties={"a": 1}),
        lambda: any_table.cloneAtVersion("0", "x"),
        lambda: any_table.cloneAtTimestamp(0, "x"),
        lambda: any_table.upgradeTableProtocol("1", 2),
        lambda: any_table.addFeatureSupport(1),
        lambda: any_table.dropFeatureSupport("x", 1),
        lambda: any_table.generate("other"),
    ):
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - the kind is what is asked
            wrong()
        assert isinstance(refused.value, ArgumentValueError)
    assert ids(table) == list(range(8))


def test_history_and_detail_have_delta_sparks_columns(table: DeltaTable) -> None:
    history = table.history()
    assert history.columns == [
        *("version", "timestamp", "userId", "userName", "operation", "operationParameters", "job"),
        *("notebook", "clusterId", "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics"),
        *("userMetadata", "engineInfo"),
    ]
    newest, oldest = history.collect()
    assert (newest["version"], newest["readVersion"], newest["isBlindAppend"]) == (1, 0, True)
    assert oldest["operationParameters"]["mode"] == "Append"
    assert table.history(1).count() == 1
    detail = table.detail().first()
    assert (detail["format"], detail["numFiles"], detail["partitionColumns"]) == ("delta", 4, ["part"])
    assert detail["tableFeatures"] == ["appendOnly", "invariants"]
    assert detail["sizeInBytes"] > 0


@pytest.mark.slow
def test_files_are_rewritten_and_removed(spark: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
    done = table.optimize().where("part = 1").executeCompaction().first()["metrics"]
    assert (done["numFilesAdded"], done["numFilesRemoved"], done["zOrderStats"]) == (1, 2, None)
    ordered = table.optimize().executeZOrderBy("id", "name").select("metrics.*").first()
    assert ordered["zOrderStats"]["strategyName"] == "all"
    assert ordered["filesAdded"]["totalFiles"] == ordered["numFilesAdded"]
    with pytest.raises(AnalysisException, match="non-partition column 'id'") as failed:
        table.optimize().where("id = 1").executeCompaction()
    assert isinstance(failed.value, PartitionPredicateError)
    with pytest.raises(PartitionZOrderError, match="part is a partition column"):
        table.optimize().executeZOrderBy(["part"])
    assert table.vacuum().collect() == table.vacuum(1000).collect() == []
    with pytest.raises(RetentionTooShortError):
        table.vacuum(0)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        table.vacuum(0)
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert len(list((tmp_path / "t").glob("part=*/*.parquet"))) == table.detail().first()["numFiles"]
    table.generate("Symlink_Format_Manifest")
    assert len(list((tmp_path / "t" / "_symlink_format_manifest").rglob("manifest"))) == 2


def test_a_table_goes_back_and_is_cloned(spark: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
    first = table.history().collect()[-1]["timestamp"]
    (row,) = collected(table.restoreToVersion(0))
    assert (row["num_removed_files"], row["num_of_files_after_restore"], row["num_restored_files"]) == (
        2,
        2,
        0,
    )
    assert row["removed_files_size"] > 0
    text = (first + dt.timedelta(milliseconds=1)).astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    with pytest.raises(TimestampError, match="cannot be converted to a valid timestamp"):
        table.restoreToTimestamp("05/04/1999")
    target = str(tmp_path / "clone")
    clone = table.cloneAtVersion(1, target, properties={"mine": "1"})
    assert (ids(clone), clone.detail().first()["properties"]["mine"]) == (list(range(8)), "1")
    with pytest.raises(NamedTableExistsError):
        table.clone(target)
    assert ids(table.clone(target, replace=True)) == [0, 1, 2, 3]
    shallow = table.cloneAtTimestamp(text, str(tmp_path / "shallow"), isShallow=True)
    assert len(ids(shallow)) in (4, 8)


def test_the_protocol_only_rises(table: DeltaTable) -> None:
    table.upgradeTableProtocol(1, 3)
    table.upgradeTableProtocol(1, 2)
    assert table.detail().first()["minWriterVersion"] == 3
    table.addFeatureSupport("vacuumProtocolCheck")
    detail = table.detail().first()
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (3, 7)
    assert "vacuumProtocolCheck" in detail["tableFeatures"]
    table.addFeatureSupport("domainMetadata")
    with pytest.raises(HistoryTruncationError):
        table.dropFeatureSupport("domainMetadata", True)
    table.dropFeatureSupport("domainMetadata")
    with pytest.raises(FeatureNotPresentError, match="DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"):
        table.dropFeatureSupport("domainMetadata")
    with pytest.raises(UnknownFeatureError, match="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"):
        table.addFeatureSupport("abc")
    with pytest.raises(AnalysisException) as failed:
        table.dropFeatureSupport("abc")
    assert isinstance(failed.value, UnknownFeatureDropError)
    assert failed.value.getCondition() == "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"


def test_a_directory_of_parquet_becomes_a_table(spark: SparkSession, tmp_path: Path) -> None:
    for name, schema in (("a", "day date"), ("b", StructType().add("day", DateType()))):
        uri = str(tmp_path / name)
        spark.sql("select 1 n, date'2026-01-02' day").write.partitionBy("day").parquet(uri)
        table = DeltaTable.convertToDelta(spark, f"parquet.`{uri}`", schema)
        assert collected(table.toDF()) == [{"n": 1, "day": dt.date(2026, 1, 2)}]
        assert collected(DeltaTable.convertToDelta(spark, f"delta.`{uri}`").toDF()) != []
    with pytest.raises(DeltaError, match="cannot be converted"):
        DeltaTable.convertToDelta(spark, "csv.`/x`")


def test_a_builder_makes_every_kind_of_column(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = str(tmp_path / "t")
    id_column = DeltaTable.columnBuilder(spark, "id").dataType("bigint")
    table = (
        DeltaTable.create(spark)
        .location(uri)
        .addColumn(id_column.generatedAlwaysAs(IdentityGenerator(5, 2)).build())
        .addColumn("part", "int", nullable=False, comment="of the day")
        .addColumn("next", IntegerType(), generatedAlwaysAs="part + 1")
        .addColumns([StructField("s", StringType(), False), StructField("n", LongType())])
        .partitionedBy(["part"])
        .comment("a table")
        .property("mine", "1")
        .execute()
    )
    spark_jobs.write(spark.sql("select 1 as part, 's' as s"), uri, mode="append")
    assert collected(table.toDF()) == [{"id": 5, "part": 1, "next": 2, "s": "s", "n": None}]
    schema = table.toDF().schema
    assert [field.nullable for field in schema.fields] == [True, False, True, False, True]
    assert table.alias("x").toDF().schema == schema
    table.alias("x").toDF().where("x.s = 's'").explain()
    plan = capsys.readouterr().out
    assert "EqualTo(s,s)" in plan
    assert "coalesce" not in plan
    assert schema["part"].metadata == {"comment": "of the day"}
    detail = table.detail().first()
    assert (detail["description"], detail["properties"]) == ("a table", {"mine": "1"})
    with pytest.raises(NamedTableExistsError):
        DeltaTable.create(spark).location(uri).addColumn("x", "int").execute()
    assert (
        DeltaTable.createIfNotExists(spark).location(uri).addColumn("x", "int").execute().toDF().count() == 1
    )
    replaced = DeltaTable.createOrReplace(spark).location(uri).addColumn("x", "int").clusterBy("x").execute()
    assert replaced.toDF().columns == ["x"]
    assert replaced.detail().first()["clusteringColumns"] == ["x"]
    replaced.optimize().executeCompaction()
    assert DeltaTable.replace(spark).location(uri).addColumn("y", "int").execute().toDF().columns == ["y"]
    with pytest.raises(NamedTableNotFoundError):
        DeltaTable.replace(spark).location(uri + "2").addColumn("y", "int").execute()


def test_a_builder_refuses_wrong_arguments(spark: SparkSession, tmp_path: Path) -> None:
    builder: Any = DeltaTable.create(spark).location(str(tmp_path / "t"))
    for wrong in (
        lambda: builder.tableName(1),
        lambda: builder.location(1),
        lambda: builder.comment(1),
        lambda: builder.addColumn(1, "int"),
        lambda: builder.addColumn("a", 1),
        lambda: builder.addColumn("a", "int", nullable=1),
        lambda: builder.addColumn("a", "int", comment=1),
        lambda: builder.addColumn("a", "int", generatedAlwaysAs=1),
        lambda: builder.addColumn("a", "int", generatedByDefaultAs="1"),
        lambda: builder.addColumns(1),
        lambda: builder.addColumns([1]),
        lambda: builder.partitionedBy(1),
        lambda: builder.clusterBy([1]),
        lambda: builder.property("a", 1),
    ):
        with pytest.raises(TypeError):
            wrong()
    for wrong in (
        lambda: builder.addColumn("a", "bigint", generatedAlwaysAs=IdentityGenerator(step=0)),
        lambda: builder.addColumn("a", "bigint", True, "1", IdentityGenerator()),
        lambda: DeltaTable.create(spark).addColumn("a", "int").execute(),
    ):
        with pytest.raises(ArgumentValueError):
            wrong()
    for text in ("1", "int, b string", "int NOT NULL COMMENT 'x'", ""):
        with pytest.raises(ParseException) as failed:
            builder.addColumn("a", text)
        assert isinstance(failed.value, ColumnTypeError)
    with pytest.raises(UnsupportedOperationException) as refused:
        builder.addColumn("a", "int", generatedByDefaultAs=IdentityGenerator())
    assert isinstance(refused.value, IdentityTypeError)
    assert not (tmp_path / "t").exists()


def test_a_named_table_is_made_and_replaced(spark: SparkSession, tmp_path: Path) -> None:
    uri, name = str(tmp_path / "t"), "built_table"
    builder = DeltaTable.create(spark).tableName(name).location(uri).addColumn("id", "bigint")
    try:
        builder.execute()
        assert DeltaTable.forName(spark, name).detail().first()["name"].endswith(name)
        with pytest.raises(AnalysisException, match=f"{name} already exists"):
            builder.execute()
        DeltaTable.createOrReplace(spark).tableName(name).addColumn("x", "int").execute()
        assert spark_jobs.table(spark, name).columns == ["x"]
        spark.sql(f"DROP TABLE {name}")
        with pytest.raises(SchemaMismatchError):
            DeltaTable.create(spark).tableName(name).location(uri).addColumn("y", "int").execute()
        DeltaTable.createIfNotExists(spark).tableName(name).location(uri).execute()
        assert spark_jobs.table(spark, name).columns == ["x"]
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    with pytest.raises(AnalysisException, match="cannot be found"):
        DeltaTable.replace(spark).tableName(name).addColumn("x", "int").execute()
