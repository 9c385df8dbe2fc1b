"""Distribution of one row to each Spark task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
