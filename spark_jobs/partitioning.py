"""Distribution of one row to each Spark task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def one_row_per_partition(frame: DataFrame, count: int, column: str) -> DataFrame:
    """The frame in `count` partitions, by a column of consecutive integers.

    The partition is the number itself, not its hash, because two rows in one partition would run one after
    the other. Spark 4.0 lacks `repartitionById`. There it uses ranges, which cost one more small job.
    """
    # Check the class: a DataFrame treats any attribute name as a column.
    if hasattr(type(frame), "repartitionById"):
        return frame.repartitionById(count, column)
    return frame.repartitionByRange(count, column)
