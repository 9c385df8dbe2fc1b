"""Optimized writes: rows are exchanged before they are written, so that fewer and larger files arise.

Without it each task writes a file into each partition of which it has rows. Spark rebalances the rows by
their partition; adaptive execution then merges small parts and splits large ones at the target size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from delta_core.data.write_plan import WritePlan
from spark_jobs.expressions.columns import quoted
from spark_jobs.scoped_conf import scoped_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPTIMIZE_WRITE: Final = "delta.autoOptimize.optimizeWrite"
AUTO_OPTIMIZE: Final = "delta.autoOptimize"
"""The older property. It counts where OPTIMIZE_WRITE is not set."""

LARGEST_PART_BYTES: Final = 512 << 20
"""The limit for the rows of one task, in bytes of the exchange. A file is smaller than its rows there."""


def is_optimized(plan: WritePlan, request: bool | None) -> bool:
    """Whether a write is optimized: as requested, or else by the table's property."""
    if request is not None:
        return request
    value = plan.configuration.get(OPTIMIZE_WRITE, plan.configuration.get(AUTO_OPTIMIZE, "false"))
    return value.strip().lower() == "true"


def rebalanced(frame: DataFrame, partition_columns: Sequence[str]) -> DataFrame:
    """The rows, brought together by partition in parts of about the same size."""
    from pyspark.sql import functions as fn

    return frame.hint("rebalance", *[fn.col(quoted(name)) for name in partition_columns])


@contextmanager
def parts_of(spark: SparkSession, plan: WritePlan) -> Iterator[None]:
    """Set the size of the parts in the session while the block runs.

    Raises:
        ConfigurationError: another job of this session needs another size at the same time.
    """
    size = min(plan.properties.target_file_size_bytes, LARGEST_PART_BYTES)
    settings = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(size),
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
    }
    with scoped_conf(spark, settings):
        yield
