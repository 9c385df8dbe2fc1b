"""Names of tables in Spark's session catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

import spark_jobs
from delta_core.errors import ConfigurationError, TableNotFoundError
from spark_jobs import names
from spark_jobs.spark_errors import NamedTableExistsError, NamedTableNotFoundError, NotADeltaTableError
from tests.support.spark import collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def uri(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of two versions at a path with characters that have a meaning elsewhere."""
    path = str(tmp_path / "my|t *%20 x")
    spark_jobs.write(spark.range(2), path, mode="error", configuration={"mine": "1"})
    spark_jobs.write(spark.range(5), path, mode="overwrite")
    yield path
    for name in ("named", "t_managed", "other_name", "my_db.named"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql("DROP DATABASE IF EXISTS my_db")


def test_a_name_leads_to_its_table(spark: SparkSession, uri: str) -> None:
    address = names.register(spark, "named", uri)
    assert (address.uri, address.provider, address.is_managed) == (uri, "deltaward", False)
    assert str(address.name).endswith("default.named")
    assert spark_jobs.table(spark, "NAMED").count() == 5
    assert spark_jobs.table(spark, "default.named", version=0).count() == 2
    assert spark_jobs.table(spark, f"delta.`{uri}`", where="id > 3").count() == 1
    assert address in names.registered(spark)
    with pytest.raises(AnalysisException, match="already exists"):
        names.register(spark, "named", uri)
    with pytest.raises(Exception, match=r"spark_jobs\.table"):
        spark.table("named").collect()
    spark.sql("DROP TABLE named")
    assert not names.is_registered(spark, "named")
    assert spark_jobs.read(spark, uri).count() == 5


def test_a_statement_of_spark_makes_a_name(spark: SparkSession, uri: str) -> None:
    spark.sql("CREATE DATABASE my_db")
    # Spark decodes percent-escapes of a LOCATION, which `register` does not use.
    uri = f"{uri.removesuffix('%20 x')}y"
    spark_jobs.write(spark.range(5), uri, mode="error")
    spark.sql(f"CREATE TABLE my_db.named USING deltaward LOCATION '{uri}' COMMENT 'mine'")
    assert names.resolve(spark, "My_Db.Named").uri == uri
    assert [address.uri for address in names.registered(spark, "my_db")] == [uri]
    assert spark_jobs.DeltaTable.forName(spark, "my_db.named").toDF().count() == 5
    assert names.unregister(spark, "my_db.named")
    assert not names.unregister(spark, "my_db.named")


def test_what_is_no_delta_table_is_refused(spark: SparkSession, uri: str) -> None:
    spark.range(1).createOrReplaceTempView("named")
    try:
        with pytest.raises(NotADeltaTableError, match="a view"):
            names.resolve(spark, "named")
    finally:
        spark.catalog.dropTempView("named")
    for name in ("named", "no_db.named", "named.*", "na_ed"):
        expected = ConfigurationError if "*" in name else NamedTableNotFoundError
        with pytest.raises(expected):
            names.resolve(spark, name)
    with pytest.raises(TableNotFoundError):
        names.register(spark, "named", f"{uri}/none")
    with pytest.raises(ConfigurationError, match="a path"):
        names.register(spark, f"delta.`{uri}`", uri)


def test_a_registry_file_stands_for_the_catalog(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    registry = tmp_path / "tables.json"
    names.register(spark, "lake.orders", uri, registry=registry)
    assert spark_jobs.table(spark, "lake.orders", registry=registry).count() == 5
    with pytest.raises(NamedTableExistsError):
        names.register(spark, "lake.orders", uri, registry=registry)
    spark.conf.set("spark.deltaward.tables", str(registry))
    try:
        assert spark_jobs.DeltaTable.forName(spark, "LAKE.orders").detail().first()["numFiles"] > 0
        assert [address.name for address in names.registered(spark, "lake")] == ["lake.orders"]
        assert names.unregister(spark, "lake.orders")
    finally:
        spark.conf.unset("spark.deltaward.tables")
    with pytest.raises(NamedTableNotFoundError):
        spark_jobs.table(spark, "lake.orders", registry=registry)


def test_a_managed_table_goes_with_its_name(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    builder = spark_jobs.DeltaTable.create(spark).tableName("t_managed").addColumn("id", "bigint")
    table = builder.execute()
    address = names.resolve(spark, "t_managed")
    assert address.is_managed
    spark.sql("DROP TABLE IF EXISTS named")
    moved = names.rename(spark, "t_managed", "named")
    assert moved.is_managed
    assert not names.is_registered(spark, "t_managed")
    address = names.rename(spark, "named", "t_managed")
    table = spark_jobs.DeltaTable.forName(spark, "t_managed")
    spark_jobs.write(spark.range(3), address.uri, mode="append")
    assert len(collected(table.toDF())) == 3
    names.register(spark, "named", uri)
    with pytest.raises(NamedTableExistsError):
        names.rename(spark, "t_managed", "named")
    assert names.rename(spark, "named", "other_name").uri == uri
    other = str(tmp_path / "other")
    spark_jobs.write(spark.range(1), other, mode="error")
    assert names.relocate(spark, "other_name", other).uri == other
    assert names.unregister(spark, "other_name")
    assert spark_jobs.DeltaTable.isDeltaTable(spark, other)
    spark.sql("DROP TABLE t_managed")
    assert not spark_jobs.DeltaTable.isDeltaTable(spark, address.uri)
