"""Writers at once: every row, no abort."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

import spark_jobs
from tests.support.spark import rows_of

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_four_concurrent_appends_keep_every_row(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        uri = str(tmp_path / str(number))

        def append(index: int, uri: str = uri) -> int | None:
            frame = spark.range(index * 1000, (index + 1) * 1000, 1, 2)
            moments = frame.selectExpr("id", "timestamp_micros(id) as moment", "id % 2 as p")
            return spark_jobs.write(moments, uri, mode="append", partition_by=["p"]).version_to

        with ThreadPoolExecutor(4) as pool:
            versions = list(pool.map(append, range(4)))
        assert sorted(versions, key=lambda version: version or 0) == [0, 1, 2, 3]
        assert [row["id"] for row in sorted(rows_of(uri), key=lambda row: row["id"])] == list(range(4000))
        stats = DeltaTable(uri).get_add_actions(flatten=True)
        # Statistics of the column show that no job lost the timestamp setting to another one's end.
        assert "min.moment" in str(stats.schema)
