"""The number of Spark tasks, and the distribution of one row to each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from delta_core.execution.limits import available_cpus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DEFAULT_TASKS = 16
_LOCAL = re.compile(r"local\[(\d+|\*)(?:,\d+)?\]")


def local_cores(spark: SparkSession) -> int | None:
    """The number of cores of `local[n]`; None for another master."""
    local = _LOCAL.fullmatch(spark.conf.get("spark.master", "") or "")
    if local is None:
        return None
    return available_cpus() if local[1] == "*" else int(local[1])


def parallel_tasks(spark: SparkSession) -> int:
    """The number of tasks that Spark can probably run at a time; a session does not know its cluster."""
    given = spark.conf.get("spark.default.parallelism", None)
    return max(1, local_cores(spark) or int(given or _DEFAULT_TASKS))


def one_row_per_partition(frame: DataFrame, count: int, column: str) -> DataFrame:
    """Repartition `count` rows into one partition per row. The column has the integers 0 to `count` - 1.

    The partition is the number itself, not its hash, because Spark would process two rows in one partition
    one after the other. Spark 4.0 lacks `repartitionById`, so the function uses ranges with Spark 4.0. They
    cost one additional small Spark job.
    """
    # Check the class: a DataFrame treats any attribute name as a column.
    if hasattr(type(frame), "repartitionById"):
        return frame.repartitionById(count, column)
    return frame.repartitionByRange(count, column)
