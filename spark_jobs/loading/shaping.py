"""Transformations of a source's rows before the write: filter, select or group, and deduplicate."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_core.errors import SchemaMismatchError
from delta_core.jobs.params.deduplicate import Deduplication
from delta_core.jobs.params.source import Source
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.engine_io import table_reach
from spark_jobs.expressions.columns import quoted
from spark_jobs.failures import as_delta_error
from spark_jobs.loading.order import sort_items
from spark_jobs.reader.read import read_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def shaped(
    frame: DataFrame, source: Source, *, kept: Sequence[str] = (), flags: Sequence[str] = ()
) -> DataFrame:
    """The rows with the source's `where`, `select` and `group_by` applied.

    Args:
        frame: the rows as read.
        source: the source with the three settings.
        kept: columns that are kept in addition to `select`; a `group_by` drops them.
        flags: boolean columns that are true when a mistyped value became null. A row with a true flag is kept
            when `where` is null, because the value could have made it true.
    """
    from pyspark.sql import functions as fn

    if source.where is not None:
        condition = fn.expr(source.where)
        if flags:
            condition = fn.coalesce(condition, fn.array_contains(fn.array(*map(fn.col, flags)), True))
        frame = frame.where(condition)
    chosen = [fn.expr(sql).alias(name) for name, sql in source.select.items()]
    if source.group_by:
        groups = [fn.expr(sql).alias(name) for name, sql in source.group_by.items()]
        return frame.groupBy(*groups).agg(*chosen)
    if chosen:
        return frame.select(*chosen, *[fn.col(quoted(name)) for name in kept])
    return frame


def deduplicated(
    spark: SparkSession,
    frame: DataFrame,
    deduplication: Deduplication | None,
    *,
    table: Snapshot | None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of `frame` without the duplicates that `deduplication` removes.

    Cost: a shuffle by key, and with `against_table` a scan of the table's key columns.

    Raises:
        SchemaMismatchError: a key is not a column of the rows or of the table.
        InvalidJobSpecError: an item of the order has no expression.
        JobFailedError: Spark refuses an item of the order.
    """
    if deduplication is None:
        return frame
    try:
        return _deduplicated(spark, frame, deduplication, table, storage_options)
    except Exception as error:
        raise as_delta_error(error, doing="deduplicating the rows") from error


def _deduplicated(
    spark: SparkSession,
    frame: DataFrame,
    deduplication: Deduplication,
    table: Snapshot | None,
    storage_options: Mapping[str, str] | None,
) -> DataFrame:
    from pyspark.sql import functions as fn
    from pyspark.sql.window import Window

    present = {name.casefold(): name for name in frame.columns}
    if missing := [key for key in deduplication.keys if key.casefold() not in present]:
        raise SchemaMismatchError(
            f"The rows have no column {', '.join(map(repr, missing))} to deduplicate by.",
            cause=f"The rows have the columns {', '.join(frame.columns)}.",
            fix="Name columns of the rows in deduplicate.keys.",
        )
    keys = [fn.col(quoted(present[key.casefold()])) for key in deduplication.keys]
    rank = f"__deltaward_{secrets.token_hex(8)}"
    order = [item.column() for item in sort_items(deduplication.order_by)] or [fn.lit(0)]
    has_null_key = fn.lit(False)
    for key in keys:
        has_null_key = has_null_key | key.isNull()
    ranked = frame.withColumn(rank, fn.row_number().over(Window.partitionBy(*keys).orderBy(*order)))
    _ = ranked.columns  # a Connect session analyzes the order only now
    frame = ranked.where((fn.col(rank) == 1) | has_null_key).drop(rank)
    if not deduplication.against_table or table is None:
        return frame
    reach = table_reach(spark, table.store, storage_options=storage_options)
    table_keys = read_snapshot(spark, table, reach, columns=list(deduplication.keys))
    table_keys = table_keys.toDF(*[f"{rank}_{index}" for index in range(len(keys))])
    same = fn.lit(True)
    for index, key in enumerate(keys):
        same = same & (key == fn.col(f"{rank}_{index}"))
    return frame.join(table_keys, same, "left_anti")
