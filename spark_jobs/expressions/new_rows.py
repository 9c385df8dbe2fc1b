"""New rows of a table, from a caller's DataFrame: the values of a `RowPlan` rendered as Spark columns.

`delta_core` decides the defaults, identity columns and generated columns of a statement. This module renders
them and decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from delta_core.data.row_plan import ComputedColumn, RowPlan
from delta_core.data.steps.identity import IdentityStep
from delta_core.data.write_plan import WritePlan
from delta_core.schema.types import BINARY, STRING, StructField
from spark_jobs.expressions.checks import Check, check_of
from spark_jobs.expressions.columns import conform_columns, quoted
from spark_jobs.expressions.predicates import to_column
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NUMBER: Final = "__deltaward_row_number"
"""A column with a different number in each row: the partition of the row, and its place there."""

_PLACE_BITS: Final = 33
"""`monotonically_increasing_id` has the place of a row in its partition in the lower bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRows:
    """Rows that were computed once and have a number each, so that identity values can be reserved for them.

    Attributes:
        frame: the rows with the column NUMBER. Every use of it has the same rows with the same numbers.
        starts: for each of Spark's partitions, how many rows the partitions before it have.
        rows: the number of all rows.
    """

    frame: DataFrame
    starts: tuple[int, ...]
    rows: int


def numbered_rows(frame: DataFrame) -> NumberedRows:
    """Compute the rows once, keep them on the executors, and number them. Runs two jobs.

    The rows are not computed again, because a source may return other rows then. So the write fails
    when an executor is lost with its rows.
    """
    from pyspark.sql import functions as fn

    kept = frame.withColumn(NUMBER, fn.monotonically_increasing_id()).localCheckpoint(eager=True)
    return with_counts(kept, NUMBER)


def with_counts(kept: DataFrame, number: str) -> NumberedRows:
    """The rows of a DataFrame that is kept, whose column `number` is `monotonically_increasing_id`."""
    from pyspark.sql import functions as fn

    partition = fn.shiftright(fn.col(number), _PLACE_BITS).cast("int")
    counted = kept.groupBy(partition.alias("p")).agg(fn.count("*").alias("n")).toArrow().to_pylist()
    counts = {row["p"]: row["n"] for row in counted}
    starts, total = [], 0
    for index in range(max(counts, default=-1) + 1):
        starts.append(total)
        total += counts.get(index, 0)
    return NumberedRows(frame=kept, starts=tuple(starts), rows=total)


class NewRows:
    """A caller's rows, which `complete` converts to rows of the table, for each attempt of a write.

    Where identity columns need values, the rows are computed once and kept for all attempts.

    Attributes:
        given: the names of the caller's columns.
    """

    def __init__(self, frame: DataFrame, *, given: Sequence[str]) -> None:
        """Take the rows. Nothing is computed."""
        self._frame = frame
        self.given = tuple(given)
        self._numbered: NumberedRows | None = None

    @property
    def are_kept(self) -> bool:
        """Whether another attempt gets the same rows."""
        return self._numbered is not None

    def complete(self, plan: RowPlan, step: IdentityStep) -> DataFrame:
        """The rows with all columns of the table, in its types.

        Args:
            plan: the values of absent columns.
            step: reserves the values of identity columns.

        Raises:
            ConstraintViolationError: an identity column has no values left.
            pyspark.errors.PySparkException: Spark failed.
        """
        if not plan.numbered:
            return with_filled_columns(conform_columns(self._frame, plan.plan.schema), plan)
        if self._numbered is None:
            self._numbered = numbered_rows(self._frame)
        rows = self._numbered
        place = place_of(rows, NUMBER)
        numbers = {name: values_from(step, name, rows.rows, place) for name in plan.numbered}
        frame = conform_columns(rows.frame, plan.plan.schema, kept=(NUMBER,))
        return with_filled_columns(frame, plan, numbers)


def place_of(rows: NumberedRows, number: str) -> Column:
    """The place of a row among all rows, from 0, by its column `number`."""
    from pyspark.sql import functions as fn

    # One constant, because an array of many expressions takes long to plan.
    starts = fn.from_json(fn.lit(json.dumps(rows.starts or (0,))), "array<bigint>")
    index = fn.shiftright(fn.col(quoted(number)), _PLACE_BITS).cast("int")
    return starts[index] + fn.col(quoted(number)).bitwiseAND(fn.lit((1 << _PLACE_BITS) - 1))


def values_from(step: IdentityStep, name: str, count: int, place: Column) -> Column:
    """Reserve `count` values of an identity column, and choose by place."""
    from pyspark.sql import functions as fn

    if not count:
        return fn.lit(None).cast("bigint")
    reserved = step.reserve(name, count)
    # The product of step and place may be outside of the range of long, although their sum is not.
    first, width = (fn.lit(str(value)).cast("decimal(38,0)") for value in (reserved.first, reserved.step))
    return (first + width * place.cast("decimal(20,0)")).cast("bigint")


def with_filled_columns(
    frame: DataFrame,
    plan: RowPlan,
    numbers: Mapping[str, Column] | None = None,
    *,
    kept: Sequence[str] = (),
) -> DataFrame:
    """The rows with the values that the plan gives them.

    Args:
        frame: the table's columns, null where the plan gives the values.
        plan: the values.
        numbers: values of identity columns, over the columns of `frame`.
        kept: other columns of the frame, which follow unchanged.
    """
    from pyspark.sql import functions as fn

    schema = plan.plan.schema
    constants = {name: to_column(literal, schema) for name, literal in plan.constants}
    values = {**constants, **(numbers or {})}
    columns = []
    for field in schema:
        column = values.get(field.name, fn.col(quoted(field.name)))
        if field.name in values:
            column = column.cast(to_spark_type(field.data_type))
        columns.append(as_read(column, field, plan.plan).alias(field.name))
    others = [fn.col(quoted(name)) for name in kept]
    frame = frame.select(*columns, *others)
    if not plan.computed:
        return frame
    computed = {item.name: _computed(item, plan) for item in plan.computed}
    return frame.select(
        *[computed.get(field.name, fn.col(quoted(field.name))).alias(field.name) for field in schema],
        *others,
    )


def given_checks(plan: RowPlan) -> list[Check]:
    """The checks of the given values of generated columns."""
    return [
        check_of(
            f"generated column {item.name}",
            item.is_as_given,
            plan.plan.schema,
            text=f"{item.name} <=> {item.text}",
            null_passes=False,
        )
        for item in plan.given
    ]


def _computed(item: ComputedColumn, plan: RowPlan) -> Column:
    field = plan.plan.schema.find(item.name)
    assert field is not None
    column = to_column(item.expression, plan.plan.schema).cast(to_spark_type(field.data_type))
    return as_read(column, field, plan.plan)


def as_read(column: Column, field: StructField, plan: WritePlan) -> Column:
    """A value as readers see it: the empty string is null in a partition column."""
    from pyspark.sql import functions as fn

    if field.name not in plan.partition_columns or field.data_type not in (STRING, BINARY):
        return column
    return fn.when(fn.octet_length(column) > 0, column)
