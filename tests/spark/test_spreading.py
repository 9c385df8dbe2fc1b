"""One row to each task, by whichever method this Spark has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.partitioning import one_row_per_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _without_the_method(monkeypatch: pytest.MonkeyPatch, frame: DataFrame) -> None:
    """Make Spark one that has it neither in this kind of frame nor in their common base."""
    for kind in type(frame).__mro__:
        if "repartitionById" in vars(kind):
            monkeypatch.delattr(kind, "repartitionById")
    assert not hasattr(type(frame), "repartitionById")


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("has_method", [True, False])
def test_every_row_has_a_partition_of_its_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, count: int, has_method: bool
) -> None:
    frame = spark.createDataFrame([(index,) for index in range(count)], "i int")
    if not has_method:
        _without_the_method(monkeypatch, frame)
    rows = one_row_per_partition(frame, count, "i").selectExpr("i", "spark_partition_id() AS p").collect()
    assert sorted(row["i"] for row in rows) == list(range(count))
    assert len({row["p"] for row in rows}) == count


def test_waves_that_do_not_begin_at_nought(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.createDataFrame([(index,) for index in range(30, 36)], "i int")
    _without_the_method(monkeypatch, frame)
    rows = one_row_per_partition(frame, 6, "i").selectExpr("spark_partition_id() AS p").collect()
    assert len({row["p"] for row in rows}) == 6
