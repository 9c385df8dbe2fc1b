"""Columns that the table fills or checks, names and ids in files, and what is refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spark_jobs
from delta_core import DeltaTable, IdentityGenerator, define_column, write_deltalake
from delta_core.actions import Protocol
from delta_core.actions.json_codec import encode_commit
from delta_core.errors import (
    ConfigurationError,
    ConstraintViolationError,
    SchemaMismatchError,
    UnsupportedTableFeatureError,
)
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.schema.arrow import variant_field
from delta_core.schema.types import StructType
from tests.support.spark import files_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

MAPPED = {"delta.columnMapping.mode": "name"}


def rows_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted(found, key=repr)


def create(path: Path, *columns: Any, **options: Any) -> None:
    DeltaTable.create(path, StructType(tuple(columns)), **options)


def adds_of(path: Path, version: int) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


@pytest.fixture(name="filled")
def filled_fixture(tmp_path: Path) -> Path:
    create(
        tmp_path,
        define_column("id", pa.int64(), nullable=False),
        define_column("kind", pa.string(), default="'taxi'"),
        define_column("twice", pa.int64(), generated_always_as="id * 2"),
        define_column("number", pa.int64(), generated_always_as=IdentityGenerator(start=5, step=-5)),
    )
    return tmp_path


def test_given_values_are_checked_and_a_given_null_stays(spark: SparkSession, filled: Path) -> None:
    good = spark.sql("select 1L as id, cast(null as string) as kind, 2L as twice")
    spark_jobs.write(good, str(filled), mode="append")
    assert rows_of(filled) == [{"id": 1, "kind": None, "twice": 2, "number": 5}]
    before = files_below(filled)
    for text in ("select 1L as id, 3L as twice", "select 1L as id, cast(null as bigint) as twice"):
        with pytest.raises(ConstraintViolationError, match="generated column twice"):
            spark_jobs.write(spark.sql(text), str(filled), mode="append")
    with pytest.raises(SchemaMismatchError, match="identity column number"):
        spark_jobs.write(spark.sql("select 1L as id, 3L as number"), str(filled), mode="append")
    assert files_below(filled) == before
    assert DeltaTable(filled).version() == 1


def test_a_merge_fills_computes_and_checks(spark: SparkSession, filled: Path) -> None:
    spark_jobs.write(spark.range(1, 4), str(filled), mode="append")
    numbers = {row["id"]: row["number"] for row in rows_of(filled)}
    source = spark.sql("select 3L as id, 30L as new union all select 9L, 90L").alias("s")

    def merge(**values: str) -> None:
        table = spark_jobs.DeltaTable.forPath(spark, str(filled)).alias("t")
        builder = table.merge(source, "t.id = s.id").whenMatchedUpdate(set=values)
        builder.whenNotMatchedInsert(values={"id": "s.id"}).execute()

    with pytest.raises(ConstraintViolationError, match="generated column twice"):
        merge(id="s.new", twice="7")
    with pytest.raises(SchemaMismatchError, match="identity column number"):
        merge(number="7")
    merge(id="s.new")
    found = {row["id"]: row for row in rows_of(filled)}
    assert found[30] == {"id": 30, "kind": "taxi", "twice": 60, "number": numbers[3]}
    assert (found[9]["kind"], found[9]["twice"]) == ("taxi", 18)
    assert found[9]["number"] < min(numbers.values())


def test_a_merge_that_fails_leaves_no_change_data(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(8), pa.int64())})
    write_deltalake(tmp_path, rows, configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(tmp_path).alter.add_constraint({"small": "id < 10"})
    before = files_below(tmp_path)
    source = spark.range(4, 12, 1, 2).alias("s")
    table = spark_jobs.DeltaTable.forPath(spark, str(tmp_path)).alias("t")
    merge = table.merge(source, "t.id = s.id").whenMatchedDelete("s.id = 5")
    merge = merge.whenMatchedUpdate(set={"id": "s.id - 4"}).whenNotMatchedInsert(values={"id": "s.id"})
    with pytest.raises(ConstraintViolationError, match="small"):
        merge.execute()
    # The empty directory stays, since another writer may be about to use it.
    assert files_below(tmp_path) - {"_change_data"} == before
    DeltaTable(tmp_path).alter.drop_constraint("small")
    merge.execute()
    kinds = DeltaTable(tmp_path).load_cdf(3, 3).read_all().column("_change_type").to_pylist()
    assert sorted(kinds) == ["delete", *["insert"] * 4, *["update_postimage"] * 3, *["update_preimage"] * 3]


def test_concurrent_writers_never_give_a_number_twice(spark: SparkSession, filled: Path) -> None:
    frames = [spark.range(start, start + 20, 1, 2) for start in range(0, 80, 20)]

    def by_spark(number: int) -> None:
        spark_jobs.write(frames[number], str(filled), mode="append")

    def by_arrow(number: int) -> None:
        write_deltalake(filled, pa.table({"id": range(100 + number, 110 + number)}), mode="append")

    with ThreadPoolExecutor(5) as pool:
        done = [pool.submit(by_spark, number) for number in range(4)]
        done += [pool.submit(by_arrow, number) for number in (0, 10)]
        for one in done:
            one.result()
    rows = rows_of(filled)
    numbers = [row["number"] for row in rows]
    assert len(rows) == 100
    assert len(set(numbers)) == 100
    assert all(number <= 5 and number % 5 == 0 for number in numbers)
    field = DeltaTable(filled).schema().find("number")
    assert field is not None
    assert field.metadata["delta.identity.highWaterMark"] == min(numbers)


@pytest.mark.parametrize(
    ("properties", "way"),
    [(MAPPED, "native"), ({**MAPPED, "delta.enableIcebergCompatV2": "true"}, "arrow")],
    ids=["mapped", "iceberg"],
)
def test_files_have_the_names_and_ids_that_delta_core_gives_them(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], way: str
) -> None:
    """Spark cannot write the ids of elements, so tasks write the files of Iceberg tables."""
    kind = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
    rows = pa.table(
        {
            "s": pa.array([{"a": 1, "b": [{"c": "x"}]}], kind),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    write_deltalake(tmp_path, rows, configuration=properties)
    frame = spark_jobs.read(spark, str(tmp_path))
    result = spark_jobs.write(frame, str(tmp_path), mode="append")
    assert result.output["engine_io"] == way
    mine, theirs = (adds_of(tmp_path, version)[0] for version in (0, 1))
    schemas = [pq.read_schema(tmp_path / add["path"]) for add in (mine, theirs)]
    assert _named(schemas[1]) == _named(schemas[0])
    assert json.loads(theirs["stats"]) == json.loads(mine["stats"])


def _named(fields: Any) -> list[Any]:
    """Names and ids at any depth."""
    found = []
    for field in fields:
        kind = field.type
        nested = [kind.field(index) for index in range(kind.num_fields)] if kind.num_fields else []
        name = "" if field.name in ("list", "element", "key_value", "entries") else field.name
        found.append((name, (field.metadata or {}).get(b"PARQUET:field_id"), _named(nested)))
    return found


def test_what_footers_lack_is_in_the_statistics(spark: SparkSession, tmp_path: Path) -> None:
    text = "concat(repeat('a', 40), repeat('b', 9000))"
    frame = spark.sql(
        f"select {text} as t, array(1, null) as l, cast('nan' as double) as x, map('k', 1) as m, 1 as n "
        "union all select null, null, 1.0D, null, null"
    ).coalesce(1)
    spark_jobs.write(frame, str(tmp_path), mode="append")
    (add,) = adds_of(tmp_path, 0)
    stats = json.loads(add["stats"])
    assert stats["nullCount"] == {"t": 1, "l": 1, "x": 0, "m": 1, "n": 1}
    # NaN is greater than every number.
    assert stats["minValues"] == {"t": "a" * 32, "n": 1, "x": 1.0}
    assert stats["maxValues"] == {"t": "a" * 32 + "\x7f", "n": 1}


def test_merging_the_schema_widens_where_the_table_allows_it(spark: SparkSession, tmp_path: Path) -> None:
    widening = {"delta.enableTypeWidening": "true", **MAPPED}
    write_deltalake(tmp_path, pa.table({"n": pa.array([1], pa.int32())}), configuration=widening)
    frame = spark.sql("select 5000000000L as n, 'new' as t")
    with pytest.raises(SchemaMismatchError):
        spark_jobs.write(frame, str(tmp_path), mode="append")
    spark_jobs.write(frame, str(tmp_path), mode="append", merge_schema=True)
    assert rows_of(tmp_path) == [{"n": 1, "t": None}, {"n": 5_000_000_000, "t": "new"}]


def test_a_new_table_is_created_with_features_and_clustering(spark: SparkSession, tmp_path: Path) -> None:
    properties = {**MAPPED, "delta.enableRowTracking": "true", "delta.dataSkippingNumIndexedCols": "0"}
    frame = spark.range(4).selectExpr("id", "id % 2 as k")
    spark_jobs.write(frame, str(tmp_path), mode="error", cluster_by=["k"], configuration=properties)
    assert DeltaTable(tmp_path).detail()["clustering_columns"] == ["k"]
    for add in adds_of(tmp_path, 0):
        assert len(json.loads(add["stats"])["minValues"]) == 1
        assert add["baseRowId"] >= 0


def test_dynamic_overwrite_is_refused_where_it_means_nothing(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(1)
    for options in (
        {"mode": "append", "partition_overwrite_mode": "dynamic"},
        {"mode": "overwrite", "partition_overwrite_mode": "dynamic", "replace_where": "id = 0"},
        {"mode": "overwrite", "partition_overwrite_mode": "sometimes"},
        {"mode": "overwrite", "partition_overwrite_mode": "dynamic"},
        {"mode": "append", "max_records_per_file": 0},
    ):
        with pytest.raises(ConfigurationError):
            spark_jobs.write(frame, str(tmp_path), **options)
    assert files_below(tmp_path) == set()


def test_shredded_variants_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    names = frozenset({"variantType", "variantShredding"})
    DeltaTable.create(tmp_path, pa.schema([pa.field("id", pa.int64()), variant_field("v")]))
    protocol = Protocol(
        min_reader_version=3, min_writer_version=7, reader_features=names, writer_features=names
    )
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_bytes(encode_commit([protocol]))
    for way in (EngineIO.NATIVE, EngineIO.ARROW):
        with pytest.raises(UnsupportedTableFeatureError, match="variantShredding"):
            spark_jobs.write(spark.range(1), str(tmp_path), mode="append", engine_io=way)
        table = spark_jobs.DeltaTable.forPath(spark, str(tmp_path), engine_io=way).alias("t")
        with pytest.raises(UnsupportedTableFeatureError, match="variantShredding"):
            table.merge(spark.range(1).alias("s"), "t.id = s.id").whenMatchedDelete().execute()
    assert files_below(tmp_path) == set()
