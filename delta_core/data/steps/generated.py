"""Generated columns: computed when absent, checked when given.

PROTOCOL.md, "Generated Columns": `(<value> <=> <generation expression>) IS TRUE`. Expressions on timestamps
use UTC; a table does not record the time zone of another writer's session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from delta_core.data.constraints import require
from delta_core.data.row_batch import RowBatch
from delta_core.data.steps.step import with_column
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ExpressionError
from delta_core.expressions.arithmetic import cast_value
from delta_core.expressions.ast import Cast, Column, Comparison, ComparisonOperator, Expression
from delta_core.expressions.columns import referenced_names
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.stored_expressions import parse_stored
from delta_core.expressions.typing import resolve, type_of
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.types import StructField
from delta_core.table_features.generation import GenerationExpression


class GeneratedStep:
    """Computes or checks generated columns.

    Raises:
        ExpressionError: an expression cannot be parsed, resolved or evaluated.
        ConstraintViolationError (from `apply`): given values differ from the result of the expression; the
            message shows a row.
    """

    def __init__(self, plan: WritePlan) -> None:
        generated = frozenset(item.name for item in plan.generated)
        self._fields = {field.name: field for field in plan.schema}
        self._partitions = frozenset(plan.partition_columns)
        self._strings = {item.name: item.text for item in plan.generated}
        self._expressions = {
            item.name: _expression(item, self._fields[item.name], plan, generated) for item in plan.generated
        }

    @property
    def expressions(self) -> Mapping[str, Expression]:
        """The expressions by column, with the columns' types, resolved against the table's schema."""
        return self._expressions

    def apply(self, batch: RowBatch) -> RowBatch:
        """Compute absent generated columns, and check the given ones."""
        columns = batch.columns
        for name, expression in self._expressions.items():
            field, is_partition = self._fields[name], name in self._partitions
            if name in batch.absent:
                # Arithmetic on decimals returns a wider type.
                values = cast_value(evaluate(expression, columns), type_to_arrow(field.data_type))
                columns = with_column(columns, field, values, is_partition=is_partition)
                continue
            given = Comparison(ComparisonOperator.EQ_NULL_SAFE, Column((name,)), expression)
            require(f"Generated column {name} ({self._strings[name]})", given, columns)
        return replace(batch, columns=columns, absent=batch.absent - self._expressions.keys())


def _expression(
    item: GenerationExpression, field: StructField, plan: WritePlan, generated: frozenset[str]
) -> Expression:
    try:
        expression = resolve(parse_stored(item.text, plan.schema), plan.schema)
        named = referenced_names(expression) & generated
        if named:
            raise ExpressionError(
                f"The expression contains the generated column {min(named)}.",
                cause="A generated column may only depend on columns that are not generated.",
                fix="Use only columns that are not generated.",
            )
        if type_of(expression, plan.schema) != field.data_type:
            expression = resolve(Cast(expression, field.data_type), plan.schema)
        return expression
    except ExpressionError as error:
        raise ExpressionError(
            f"Column {item.name} cannot be generated from {item.text}.",
            cause=str(error),
            fix="Write with an engine that supports the expression, or change the table.",
        ) from error
