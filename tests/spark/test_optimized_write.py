"""Optimized writes: few files in each partition, whatever the number of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import spark_jobs
from delta_core import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTY = {"delta.autoOptimize.optimizeWrite": "true"}


@pytest.mark.parametrize("engine_io", ["native", "arrow"])
def test_each_partition_gets_one_file(spark: SparkSession, tmp_path: Path, engine_io: str) -> None:
    rows = spark.range(0, 60, 1, 3).selectExpr("id", "id % 2 AS p")
    before = spark.conf.get("spark.sql.adaptive.coalescePartitions.parallelismFirst")
    counts = []
    for name, request, properties in (
        ("plain", None, None),
        ("requested", True, None),
        ("by property", None, PROPERTY),
        ("refused", False, PROPERTY),
    ):
        uri = tmp_path / name
        spark_jobs.write(
            rows,
            str(uri),
            mode="append",
            partition_by=["p"],
            configuration=properties,
            optimized_write=request,
            engine_io=engine_io,
        )
        table = DeltaTable(uri)
        assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == list(range(60))
        counts.append(len(table.file_uris()))
    assert counts == [6, 2, 2, 6]
    assert spark.conf.get("spark.sql.adaptive.coalescePartitions.parallelismFirst") == before
