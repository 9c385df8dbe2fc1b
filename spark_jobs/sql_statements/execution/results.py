"""Results as DataFrames, with delta-spark's column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_core.jobs import JobResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, schema: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Some rows as a DataFrame with a schema in SQL."""
    return spark.createDataFrame(list(rows), schema)


def no_rows(spark: SparkSession) -> DataFrame:
    """The result of a statement without one: no columns and no rows."""
    from pyspark.sql.types import StructType

    return spark.createDataFrame([], StructType([]))


def affected_rows(spark: SparkSession, result: JobResult, *metrics: str) -> DataFrame:
    """The number of rows that a statement changed, as the sum of some metrics."""
    found = metrics_of(result)
    return frame_of(spark, "num_affected_rows bigint", [(sum(int(found.get(name, 0)) for name in metrics),)])


def metrics_of(result: JobResult) -> Mapping[str, Any]:
    """The metrics of the operation."""
    return (result.output or {}).get("metrics") or {}
