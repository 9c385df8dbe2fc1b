"""Tables of many files in many partitions: 20,000 and 2,000 under `make soak-many-files`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as fn

import spark_jobs
from delta_core import DeltaTable
from delta_core.actions import AddFile
from delta_core.actions.json_codec import encode_commit
from delta_core.schema.types import LONG, STRING, StructField, StructType
from tests.support.soak import rounds
from tests.support.spark import collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ROWS = 4
TEMPLATES = 20


@pytest.mark.parametrize("in_directories", [True, False], ids=["directories", "values"])
def test_partition_values_and_deleted_rows_of_many_files(
    spark: SparkSession, tmp_path: Path, in_directories: bool
) -> None:
    count, partitions = rounds(usual=300, soak=20_000), rounds(usual=100, soak=2_000)
    table_of_many_files(tmp_path, count, partitions, in_directories=in_directories)
    DeltaTable(tmp_path).delete("p IN ('p7', 'p 8') AND id % 4 = 1")
    frame = spark_jobs.read(spark, str(tmp_path))
    found = collected(frame.groupBy("p").agg(fn.sum("id").alias("id_sum"), fn.count("id").alias("id_count")))
    expected = DeltaTable(tmp_path).to_pyarrow_table().group_by("p")
    assert found == sorted(expected.aggregate([("id", "sum"), ("id", "count")]).to_pylist(), key=repr)
    one = spark_jobs.read(spark, str(tmp_path), where="p = 'p7'")
    assert one.count() == (ROWS - 1) * count // partitions


def table_of_many_files(path: Path, count: int, partitions: int, *, in_directories: bool) -> None:
    """A table whose files are hard links to few; with directories that have the partition values, or none."""
    schema = StructType((StructField(name="id", data_type=LONG), StructField(name="p", data_type=STRING)))
    properties = {"delta.enableDeletionVectors": "true"}
    DeltaTable.create(path, schema, partition_by=["p"], configuration=properties)
    templates = path.parent / f"{path.name}-templates"
    templates.mkdir()
    for number in range(TEMPLATES):
        ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
        pq.write_table(pa.table({"id": ids}), templates / f"{number}.parquet")
    adds = []
    for number in range(count):
        value = f"p{number % partitions}" if number % partitions != 8 else "p 8"
        directory = f"p={value.replace(' ', '%20')}" if in_directories else f"d{number % 7}"
        (path / directory).mkdir(exist_ok=True)
        source = templates / f"{number % TEMPLATES}.parquet"
        os.link(source, path / directory / f"part-{number}.parquet")
        adds.append(
            AddFile(
                path=f"{directory.replace('%', '%25')}/part-{number}.parquet",
                partition_values={"p": value},
                size_bytes=source.stat().st_size,
                modification_time_ms=0,
                stats=f'{{"numRecords":{ROWS}}}',
            )
        )
    (path / "_delta_log" / f"{1:020}.json").write_bytes(encode_commit(adds))
