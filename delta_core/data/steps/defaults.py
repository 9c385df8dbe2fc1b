"""Default values for columns that are missing in a caller's rows; a given null stays null.

PROTOCOL.md, "Default Columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from delta_core.data.row_batch import RowBatch
from delta_core.data.steps.step import with_column
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ExpressionError
from delta_core.expressions.arithmetic import cast_value
from delta_core.expressions.constant_expressions import parse_constant
from delta_core.expressions.evaluate import evaluate
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.types import VARIANT, DataType


class DefaultsStep:
    """Fills absent columns with their defaults. Each default is evaluated once per statement.

    Raises (from `apply`):
        ExpressionError: a needed default cannot be parsed, or does not have its column's type.
    """

    def __init__(self, plan: WritePlan, *, now_us: int) -> None:
        self._plan = plan
        self._now_us = now_us
        self._strings = {item.name: item.text for item in plan.defaults}
        self._partitions = frozenset(plan.partition_columns)
        self._known: dict[str, pa.Scalar] = {}

    @property
    def strings(self) -> Mapping[str, str]:
        """The defaults as SQL text, by column."""
        return self._strings

    def apply(self, batch: RowBatch) -> RowBatch:
        """The rows with defaults in the absent columns."""
        fields = [field for field in self._plan.schema if field.name in batch.absent & self._strings.keys()]
        columns = batch.columns
        for field in fields:
            values = pa.repeat(self.value(field.name), batch.num_rows)
            columns = with_column(columns, field, values, is_partition=field.name in self._partitions)
        return replace(batch, columns=columns, absent=batch.absent - {field.name for field in fields})

    def value(self, column: str) -> pa.Scalar:
        """A column's default for this statement, in the column's Arrow type. Raises as `apply`."""
        if column not in self._known:
            field = self._plan.schema.find(column)
            assert field is not None
            try:
                self._known[column] = _value(self._strings[column], field.data_type, self._now_us)
            except ExpressionError as error:
                raise ExpressionError(
                    f"The default of column {column} ({self._strings[column]}) cannot be evaluated.",
                    cause=str(error),
                    fix="Add the column to the data, or change its default.",
                ) from error
        return self._known[column]


def _value(text: str, data_type: DataType, now_us: int) -> pa.Scalar:
    expression = parse_constant(text, now_us=now_us)
    target = type_to_arrow(data_type)
    value = evaluate(expression, pa.table({"": pa.nulls(1)}))[0]
    if not value.is_valid:
        return pa.nulls(1, target)[0]
    if data_type == VARIANT or pa.types.is_nested(target):
        raise ExpressionError(
            f"{text} is not a value of type {data_type}.",
            cause="Only NULL is supported as the default of such a column.",
            fix="Add the column to the data.",
        )
    return cast_value(value, target)
