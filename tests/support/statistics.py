"""The statistics of rows in memory, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from delta_core.data.statistics_collector import StatisticsAccumulator
from delta_core.schema.types import StructType
from delta_core.table_features.stats_leaves import SkippingProperties, stats_leaves


def collect_statistics(
    data: pa.Table | pa.RecordBatch,
    schema: StructType,
    properties: SkippingProperties | None = None,
    *,
    partition_columns: Sequence[str] = (),
    tight_bounds: bool | None = None,
) -> str:
    """The statistics JSON of a file with exactly these rows. Works on columns.

    Args:
        data: the rows, conformed to `schema`.
        schema: the table's schema.
        properties: which columns get statistics; None for the default.
        partition_columns: the partition columns, which get no statistics.
        tight_bounds: see `stats_json`.
    """
    leaves = stats_leaves(schema, properties, partition_columns=partition_columns)
    accumulator = StatisticsAccumulator(leaves)
    accumulator.update(data)
    return accumulator.to_json(tight_bounds=tight_bounds)
