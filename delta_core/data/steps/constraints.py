"""The last step with logical names: NOT NULL, invariants, CHECK constraints, replaceWhere.

PROTOCOL.md, "Column Invariants" and "CHECK Constraints": a row for which a condition is false or null
aborts the write.
"""

from __future__ import annotations

from dataclasses import replace

from delta_core.data.constraints import ConstraintChecker, require
from delta_core.data.row_batch import RowBatch
from delta_core.data.write_plan import WritePlan
from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import referenced_names
from delta_core.expressions.render import to_spark_sql
from delta_core.schema.arrow import to_arrow


class ConstraintsStep:
    """Checks rows without changing them.

    Raises (from `apply`):
        ConstraintViolationError: rows violate a condition; the message has their number and one of them.
        ExpressionError: a condition cannot be evaluated.
    """

    def __init__(self, plan: WritePlan, *, predicate: Expression | None = None) -> None:
        """Parse the conditions; `predicate` is that of replaceWhere. Raises ExpressionError."""
        self._checker = ConstraintChecker(schema=plan.schema, configuration=plan.configuration)
        self._predicate = predicate
        self._arrow = to_arrow(plan.schema)
        self._required = frozenset(field.name for field in plan.schema if not field.nullable)

    @property
    def checker(self) -> ConstraintChecker:
        """The parsed conditions."""
        return self._checker

    @property
    def columns_needed(self) -> frozenset[str]:
        """The columns in conditions, and the columns that must not be null."""
        conditions = [constraint.expression for constraint in self._checker.constraints]
        if self._predicate is not None:
            conditions.append(self._predicate)
        return frozenset().union(self._required, *(referenced_names(one) for one in conditions))

    def apply(self, batch: RowBatch) -> RowBatch:
        """The same rows, in the table's Arrow schema with its NOT NULL declarations."""
        columns = batch.columns
        self._checker.check(columns)
        if self._predicate is not None:
            label = f"The replaceWhere predicate {to_spark_sql(self._predicate)}"
            require(label, self._predicate, columns)
        if columns.schema.equals(self._arrow):
            return batch
        return replace(batch, columns=type(columns).from_arrays(columns.columns, schema=self._arrow))
