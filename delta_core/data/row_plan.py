"""The values that an engine computes and checks for the rows of one statement.

The Arrow engine applies the same values in `row_pipeline`. An engine such as Spark renders the expressions,
so that defaults, generated columns and identity columns are decided here, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_core.data.steps.align import refuse_identity_values
from delta_core.data.steps.defaults import DefaultsStep
from delta_core.data.steps.generated import GeneratedStep
from delta_core.data.write_plan import WritePlan
from delta_core.expressions.ast import Column, Comparison, ComparisonOperator, Expression, Literal
from delta_core.schema.types import BINARY, STRING, StructField


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedColumn:
    """A column whose values are those of an expression.

    Attributes:
        name: the column.
        text: the expression as the table's author wrote it.
        expression: the same, resolved against the table's schema, with the column's type.
    """

    name: str
    text: str
    expression: Expression

    @property
    def is_as_given(self) -> Expression:
        """The condition that a given value is the computed one (PROTOCOL.md, "Generated Columns")."""
        return Comparison(ComparisonOperator.EQ_NULL_SAFE, Column((self.name,)), self.expression)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """The values of the columns that a caller's rows do not have, for one statement.

    Attributes:
        plan: the write plan of the table.
        constants: columns with a default, and the default as a constant of the column's type.
        numbered: identity columns that get numbers.
        computed: generated columns that get the values of their expressions, after all other columns.
        given: generated columns whose given values must be those of their expressions.
    """

    plan: WritePlan
    constants: tuple[tuple[str, Literal], ...] = ()
    numbered: tuple[str, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    given: tuple[ComputedColumn, ...] = ()

    @classmethod
    def of(cls, plan: WritePlan, *, given: Iterable[str], now_us: int) -> RowPlan:
        """The plan for rows that have the columns `given`, compared without case.

        Args:
            plan: the write plan of the table.
            given: the columns of the caller's rows. A given null stays null.
            now_us: the statement's time, microseconds since the epoch, for defaults.

        Raises:
            SchemaMismatchError: an identity column that accepts no values is given.
            ExpressionError: a needed default or a generation expression cannot be parsed or evaluated.
        """
        known = {name.casefold() for name in given}
        absent = frozenset(name for name in plan.schema.names if name.casefold() not in known)
        refuse_identity_values(plan, absent)
        generated = computed_columns(plan)
        return cls(
            plan=plan,
            constants=default_constants(plan, absent, now_us),
            numbered=tuple(item.name for item in plan.identity if item.name in absent),
            computed=tuple(item for item in generated if item.name in absent),
            given=tuple(item for item in generated if item.name not in absent),
        )

    @property
    def filled(self) -> frozenset[str]:
        """The columns that get their values from this plan."""
        names = [name for name, _ in self.constants]
        return frozenset((*names, *self.numbered, *(item.name for item in self.computed)))


def computed_columns(plan: WritePlan) -> list[ComputedColumn]:
    """The generated columns of a table.

    Raises:
        ExpressionError: a generation expression cannot be parsed or resolved.
    """
    if not plan.generated:
        return []
    expressions = GeneratedStep(plan).expressions
    return [
        ComputedColumn(name=item.name, text=item.text, expression=expressions[item.name])
        for item in plan.generated
    ]


def default_constants(
    plan: WritePlan, columns: frozenset[str], now_us: int
) -> tuple[tuple[str, Literal], ...]:
    """The defaults of those of the columns that have one, as constants of the column's type.

    Args:
        plan: the write plan of the table.
        columns: names of columns.
        now_us: the statement's time, microseconds since the epoch.

    Raises:
        ExpressionError: a default cannot be parsed or evaluated.
    """
    names = {item.name for item in plan.defaults} & columns
    if not names:
        return ()
    step = DefaultsStep(plan, now_us=now_us)
    return tuple(
        (
            field.name,
            _literal(step.value(field.name), field, is_partition=field.name in plan.partition_columns),
        )
        for field in plan.schema
        if field.name in names
    )


def _literal(value: pa.Scalar, field: StructField, *, is_partition: bool) -> Literal:
    constant: Any = value.as_py()
    if is_partition and field.data_type in (STRING, BINARY) and not constant:
        # A partition column cannot contain the empty string.
        constant = None
    return Literal(constant, field.data_type)
