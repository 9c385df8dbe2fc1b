"""What becomes of a source's rows before they are written: filtered, selected or grouped, deduplicated."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from delta_core.errors import InvalidJobSpecError, SchemaMismatchError
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.failures import as_delta_error
from spark_jobs.loading.order import sort_items
from spark_jobs.loading.source_params import Source
from spark_jobs.reader.read import read_snapshot
from spark_jobs.writer.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEDUPLICATE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "required": ["keys"],
    "additionalProperties": False,
    "description": "keep one row for each key",
    "properties": {
        "keys": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        "order_by": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "description": "Spark SQL, such as seq DESC NULLS LAST: the first row stays; nulls are last",
        },
        "against_table": {
            "type": "boolean",
            "description": "leave out rows whose key the table has already",
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplication:
    """Which of several rows with one key stays.

    Attributes:
        keys: columns; a row with a null in one of them stays, since nothing says whose it is.
        order_by: the first row in this order stays; which one of equal rows is not said.
        against_table: rows whose key the target table has do not stay either.
    """

    keys: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    against_table: bool = False


def parse_deduplicate(value: Mapping[str, Any] | None) -> Deduplication | None:
    """The parameter `deduplicate`, typed.

    Raises:
        InvalidJobSpecError: it names no key.
    """
    if value is None:
        return None
    if not value["keys"]:
        raise InvalidJobSpecError("deduplicate names no key", fix="give at least one column in keys")
    return Deduplication(
        keys=tuple(value["keys"]),
        order_by=tuple(value.get("order_by") or ()),
        against_table=value.get("against_table", False),
    )


def shaped(
    frame: DataFrame, source: Source, *, kept: Sequence[str] = (), flags: Sequence[str] = ()
) -> DataFrame:
    """The rows with the source's `where`, `select` and `group_by` applied.

    Args:
        frame: the rows as read.
        source: what is applied.
        kept: columns that go past `select`; groups have none of them.
        flags: columns, one of which is true for a row with a value that became null: such a row stays where
            `where` is neither true nor false for it, since the value might have decided.
    """
    from pyspark.sql import functions as fn

    if source.where is not None:
        condition = fn.expr(source.where)
        if flags:
            condition = fn.coalesce(condition, fn.array_contains(fn.array(*map(fn.col, flags)), True))
        frame = frame.where(condition)
    chosen = [fn.expr(text).alias(name) for name, text in source.select.items()]
    if source.group_by:
        groups = [fn.expr(text).alias(name) for name, text in source.group_by.items()]
        return frame.groupBy(*groups).agg(*chosen)
    if chosen:
        return frame.select(*chosen, *[fn.col(quoted(name)) for name in kept])
    return frame


def deduplicated(
    spark: SparkSession, frame: DataFrame, wanted: Deduplication | None, *, table: Snapshot | None
) -> DataFrame:
    """The rows of `frame` that stay.

    Cost: a shuffle by key, and with `against_table` a scan of the table's key columns.

    Raises:
        SchemaMismatchError: a key is no column of the rows, or of the table.
        InvalidJobSpecError: there is nothing to order by in an item of the order.
        JobFailedError: Spark does not take an item of the order.
    """
    if wanted is None:
        return frame
    try:
        return _deduplicated(spark, frame, wanted, table)
    except Exception as error:
        raise as_delta_error(error, doing="deduplicating the rows") from error


def _deduplicated(
    spark: SparkSession, frame: DataFrame, wanted: Deduplication, table: Snapshot | None
) -> DataFrame:
    from pyspark.sql import functions as fn
    from pyspark.sql.window import Window

    present = {name.casefold(): name for name in frame.columns}
    if missing := [key for key in wanted.keys if key.casefold() not in present]:
        raise SchemaMismatchError(
            f"The rows have no column {', '.join(map(repr, missing))} to deduplicate by.",
            cause=f"They have {', '.join(frame.columns)}",
            fix="Name columns of the rows in deduplicate.keys",
        )
    keys = [fn.col(quoted(present[key.casefold()])) for key in wanted.keys]
    rank = f"__deltaward_{secrets.token_hex(8)}"
    order = [item.column() for item in sort_items(wanted.order_by)] or [fn.lit(0)]
    no_key = fn.lit(False)
    for key in keys:
        no_key = no_key | key.isNull()
    ranked = frame.withColumn(rank, fn.row_number().over(Window.partitionBy(*keys).orderBy(*order)))
    _ = ranked.columns  # a session on a server looks at the order only now
    frame = ranked.where((fn.col(rank) == 1) | no_key).drop(rank)
    if not wanted.against_table or table is None:
        return frame
    known = read_snapshot(spark, table, columns=list(wanted.keys))
    known = known.toDF(*[f"{rank}_{index}" for index in range(len(keys))])
    same = fn.lit(True)
    for index, key in enumerate(keys):
        same = same & (key == fn.col(f"{rank}_{index}"))
    return frame.join(known, same, "left_anti")
