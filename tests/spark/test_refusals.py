"""What must not get into a table does not, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

import spark_jobs
from delta_core.actions import AddFile, Protocol
from delta_core.actions.deletion_vector import DeletionVectorDescriptor
from delta_core.actions.json_codec import encode_commit
from delta_core.errors import (
    ConfigurationError,
    ConstraintViolationError,
    CorruptLogError,
    ExpressionError,
    JobFailedError,
    NestedTableError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedTableFeatureError,
)
from delta_core.schema.types import INTEGER, LONG, STRING, ArrayType, StructField, StructType
from tests.support.spark import collected, files_below, rows_of

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(name="table")
def table_fixture(spark: SparkSession, tmp_path: Path) -> Path:
    spark_jobs.write(spark.sql("select 1 as id, 'a' as name, 1.5D as x"), str(tmp_path), mode="append")
    return tmp_path


def refused(error: type[Exception], match: str, frame: Any, table: Path, **arguments: Any) -> None:
    before, version = files_below(table), DeltaTable(str(table)).version()
    with pytest.raises(error, match=match):
        spark_jobs.write(frame, str(table), **{"mode": "append", **arguments})
    assert files_below(table) == before
    assert DeltaTable(str(table)).version() == version


def test_an_extra_column_is_refused(spark: SparkSession, table: Path) -> None:
    refused(SchemaMismatchError, "extra", spark.sql("select 1 as id, 2 as extra"), table)


def test_an_unknown_feature_is_refused_before_spark_writes(spark: SparkSession, table: Path) -> None:
    protocol = Protocol(
        min_reader_version=1, min_writer_version=7, writer_features=frozenset({"fromTheFuture"})
    )
    (table / "_delta_log" / f"{1:020d}.json").write_bytes(encode_commit([protocol]))
    before = files_below(table)
    with pytest.raises(UnsupportedTableFeatureError, match="fromTheFuture"):
        spark_jobs.write(spark.sql("select 2 as id"), str(table), mode="append")
    assert files_below(table) == before


def test_a_table_in_a_partition_folder_is_refused_before_spark_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql("select 1 as id, 2 as day")
    spark_jobs.write(frame, str(tmp_path), mode="append", partition_by=["day"])
    before = files_below(tmp_path)
    with pytest.raises(NestedTableError, match="day=2"):
        spark_jobs.write(frame, str(tmp_path / "day=2"), mode="append")
    assert files_below(tmp_path) == before


def test_a_deletion_vector_without_its_feature_is_not_read_over(spark: SparkSession, table: Path) -> None:
    (path,) = DeltaTable(str(table)).file_uris()
    dv = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^", size_in_bytes=40, cardinality=1
    )
    size = Path(path).stat().st_size
    add = AddFile(path=Path(path).name, size_bytes=size, modification_time_ms=0, deletion_vector=dv)
    (table / "_delta_log" / f"{1:020d}.json").write_bytes(encode_commit([add]))
    with pytest.raises(CorruptLogError, match="deletionVectors"):
        spark_jobs.read(spark, str(table))


@pytest.mark.parametrize("txn", [("job",), ("job", "9"), ("job", True), "job", (1, 9)])
def test_what_is_no_idempotency_key_is_refused(spark: SparkSession, table: Path, txn: Any) -> None:
    refused(ConfigurationError, "idempotency key", spark.sql("select 1 as id"), table, txn=txn)


def test_a_wrong_type_is_refused(spark: SparkSession, table: Path) -> None:
    refused(SchemaMismatchError, "id", spark.sql("select '1' as id"), table)
    refused(SchemaMismatchError, "id", spark.sql("select 1L as id"), table)


def test_a_missing_column_is_null_and_names_match_without_case(spark: SparkSession, table: Path) -> None:
    spark_jobs.write(spark.sql("select cast(2 as smallint) as ID"), str(table), mode="append")
    assert {"id": 2, "name": None, "x": None} in rows_of(table)


def test_structs_match_by_field_name(spark: SparkSession, tmp_path: Path) -> None:
    first = spark.sql("select named_struct('a', 1, 'b', array(named_struct('c', 1L, 'd', 'x'))) as s")
    spark_jobs.write(first, str(tmp_path), mode="append")
    turned = spark.sql("select named_struct('B', array(named_struct('d', 'y', 'c', 2)), 'a', 3) as s")
    spark_jobs.write(turned, str(tmp_path), mode="append")
    assert {"s": {"a": 3, "b": [{"c": 2, "d": "y"}]}} in rows_of(tmp_path)


def test_not_null_columns_are_enforced_natively(spark: SparkSession, tmp_path: Path) -> None:
    schema = StructType(
        (
            StructField(name="id", data_type=LONG, nullable=False),
            StructField(
                name="s",
                data_type=StructType((StructField(name="inner", data_type=INTEGER, nullable=False),)),
            ),
            StructField(name="list", data_type=ArrayType(element_type=STRING, contains_null=False)),
        )
    )
    good = spark.sql(
        "select 1L as id, named_struct('inner', 1) as s, array('a') as list "
        "union all select 2L, named_struct('inner', 2), null"
    )
    spark_jobs.write(good, str(tmp_path), mode="append", schema=schema)
    assert DeltaTable(str(tmp_path)).schema().fields[0].nullable is False
    bad = (
        ("NOT NULL id", "select cast(null as bigint) as id"),
        ("NOT NULL s.inner", "select 3L as id, named_struct('inner', cast(null as int)) as s"),
        # A required field of a struct asks for the struct, as in delta-spark.
        ("NOT NULL s.inner", "select 3L as id"),
        ("NOT NULL s.inner", "select 3L as id, cast(null as struct<inner: int>) as s"),
        (
            "NOT NULL list.element",
            "select 3L as id, named_struct('inner', 1) as s, array('a', null) as list",
        ),
    )
    for name, text in bad:
        refused(ConstraintViolationError, name, spark.sql(text), tmp_path)


def test_check_constraints_of_the_table_are_enforced(spark: SparkSession, table: Path) -> None:
    DeltaTable(str(table)).alter.add_constraint({"positive": "id > 0"})
    refused(ConstraintViolationError, "positive", spark.sql("select cast(null as int) as id"), table)
    refused(ConstraintViolationError, "positive", spark.sql("select -7 as id, 'why' as name"), table)
    with pytest.raises(ConstraintViolationError) as caught:
        spark_jobs.write(spark.sql("select -7 as id, 'why' as name"), str(table), mode="append")
    assert '"id":-7' in str(caught.value)
    assert '"name":"why"' in str(caught.value)


def test_a_check_sees_only_the_rows_that_are_written(spark: SparkSession, table: Path) -> None:
    frame = spark.range(-5, 5).selectExpr("cast(id as int) as id").where("id > 0")
    spark_jobs.write(frame, str(table), mode="append", constraints=[("positive", "id > 0")])
    assert spark_jobs.read(spark, str(table)).count() == 5


def test_a_constraint_on_no_column_is_refused_before_writing(spark: SparkSession, table: Path) -> None:
    frame = spark.sql("select 1 as id")
    refused(ExpressionError, "nothing", frame, table, constraints=[("c", "nothing > 0")])


def test_replace_where_replaces_and_checks(spark: SparkSession, tmp_path: Path) -> None:
    spark_jobs.write(
        spark.range(6).selectExpr("id", "id % 3 as p"), str(tmp_path), mode="append", partition_by=["p"]
    )
    new = spark.sql("select 100L as id, 1L as p")
    result = spark_jobs.write(new, str(tmp_path), mode="overwrite", replace_where="p = 1")
    assert result.metrics.files_removed
    assert sorted(row["id"] for row in rows_of(tmp_path)) == [0, 2, 3, 5, 100]
    wrong = spark.sql("select 1L as id, 2L as p union all select 7L, 1L union all select 8L, null")
    refused(
        ConstraintViolationError, "replaceWhere", wrong, tmp_path, mode="overwrite", replace_where="p = 1"
    )


def test_replace_where_keeps_the_other_rows_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    spark_jobs.write(spark.range(10).coalesce(1), str(tmp_path), mode="append")
    spark_jobs.write(spark.range(3, 4), str(tmp_path), mode="overwrite", replace_where="id >= 2 and id < 9")
    assert [row["id"] for row in collected(spark_jobs.read(spark, str(tmp_path)))] == [0, 1, 3, 9]


def test_overwrite_replaces_rows_and_schema_only_when_asked(spark: SparkSession, table: Path) -> None:
    spark_jobs.write(spark.sql("select 9 as id"), str(table), mode="overwrite")
    assert rows_of(table) == [{"id": 9, "name": None, "x": None}]
    refused(SchemaMismatchError, "other", spark.sql("select 'a' as other"), table, mode="overwrite")
    spark_jobs.write(spark.sql("select 'a' as other"), str(table), mode="overwrite", overwrite_schema=True)
    assert rows_of(table) == [{"other": "a"}]


def test_the_same_transaction_applies_once(spark: SparkSession, table: Path) -> None:
    frame = spark.sql("select 5 as id")
    first = spark_jobs.write(frame, str(table), mode="append", txn=("app", 3))
    before = files_below(table)
    for version in (3, 2):
        again = spark_jobs.write(frame, str(table), mode="append", txn=("app", version))
        assert again.already_applied
        assert again.version_to == first.version_to
    assert files_below(table) == before
    assert spark_jobs.write(frame, str(table), mode="append", txn=("app", 4)).commits == (2,)


def test_mode_error_needs_a_new_table(spark: SparkSession, table: Path) -> None:
    refused(TableExistsError, "already", spark.range(1), table, mode="error")
    refused(ConfigurationError, "mode", spark.range(1), table, mode="ignore")


def test_a_creation_repeated_with_its_key_is_applied_once(spark: SparkSession, tmp_path: Path) -> None:
    uri, key = str(tmp_path / "new"), ("app", 1)
    assert not spark_jobs.write(spark.range(1), uri, mode="error", txn=key).already_applied
    assert spark_jobs.write(spark.range(1), uri, mode="error", txn=key).already_applied
    assert DeltaTable(uri).version() == 0


def test_a_failing_spark_job_leaves_nothing(spark: SparkSession, table: Path) -> None:
    frame = spark.range(100).selectExpr("cast(if(id = 99, raise_error('broken'), id) as int) as id")
    refused(JobFailedError, "writing data files", frame, table)


def test_session_settings_are_as_before(spark: SparkSession, table: Path) -> None:
    key = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(key)
    spark_jobs.write(spark.sql("select 3 as id"), str(table), mode="append")
    assert spark.conf.get(key) == before
