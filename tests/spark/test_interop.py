"""Every version of what Spark writes here reads the same in delta-spark, delta-rs and DuckDB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import spark_jobs
from tests.support.delta_spark import by_delta_spark
from tests.support.rows import canonical_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(name="table")
def table_fixture(spark: SparkSession, tmp_path: Path) -> Path:
    """Append, replaceWhere, a new column, an overwrite; partition values that need escaping."""
    uri = str(tmp_path / "table")
    frame = spark.sql(
        "select id, cast(id as decimal(20,3)) / 7 as amount, timestamp_micros(id * 1000003) as moment,"
        " date_add(date'2013-01-01', cast(id as int)) as day, named_struct('a', id, 'b', array('x', null))"
        " as s, map('k', id) as m, if(id % 5 = 0, null, concat('p ', id % 5, '/%=:ü')) as p from range(50)"
    )
    spark_jobs.write(frame, uri, mode="append", partition_by=["p"])
    replacing = frame.where("p is null").selectExpr("id + 100 as id", "p")
    spark_jobs.write(replacing, uri, mode="overwrite", replace_where="p is null")
    wider = spark.sql("select 500L as id, 'new' as p, cast(-1.5 as float) as extra")
    spark_jobs.write(wider, uri, mode="append", merge_schema=True)
    spark_jobs.write(spark.sql("select 'only' as name"), uri, mode="overwrite", overwrite_schema=True)
    return tmp_path / "table"


def _ours(spark: SparkSession, table: Path, version: int) -> list[str]:
    return canonical_rows(spark_jobs.read(spark, str(table), version=version).toArrow())


def test_deltalake_and_duckdb_read_the_same_rows(spark: SparkSession, table: Path) -> None:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"LOAD '{extension}'")
        for version in range(4):
            ours = _ours(spark, table, version)
            assert canonical_rows(DeltaTable(str(table), version=version).to_pyarrow_table()) == ours
            answer = connection.execute("SELECT * FROM delta_scan(?, version => ?)", [str(table), version])
            assert canonical_rows(answer.to_arrow_table()) == ours


@pytest.mark.extra
@pytest.mark.soak  # tests/interop compares every form of our logs with delta-spark
def test_delta_spark_reads_the_same_rows(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    requests = [{"uri": str(table), "version": version} for version in range(4)]
    asked = tmp_path / "requests.json"
    asked.write_text(json.dumps(requests))
    out = tmp_path / "rows"
    out.mkdir()
    by_delta_spark("reader", str(asked), str(out))
    for request in requests:
        theirs: pa.Table = pq.read_table(out / f"{request['version']}.parquet")
        assert canonical_rows(theirs) == _ours(spark, table, int(request["version"]))
