"""The conditions on every row of a table: NOT NULL, column invariants, CHECK constraints.

A row violates a condition that is false or null for it (PROTOCOL.md, "CHECK
Constraints": must return true for each row; "Column Invariants": false or null aborts).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.data.row_batch import RowBatch
from delta_core.data.write_plan import WritePlan
from delta_core.errors import ConstraintViolationError, ExpressionError
from delta_core.expressions.ast import Expression
from delta_core.expressions.evaluate import matches
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.stored_expressions import resolve_stored
from delta_core.schema.arrow import to_arrow
from delta_core.schema.enforcement import null_violation_error
from delta_core.schema.nullability import find_null_violations
from delta_core.schema.types import StructField, StructType

CONSTRAINT_PREFIX = "delta.constraints."
INVARIANTS_KEY = "delta.invariants"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A CHECK constraint or column invariant of a table, parsed.

    Attributes:
        name: the CHECK constraint's name, or the column of an invariant.
        text: the SQL text in the table's metadata.
        expression: the condition, resolved against the table's schema.
        is_invariant: whether it is a column invariant.
    """

    name: str
    text: str
    expression: Expression
    is_invariant: bool = False

    @property
    def label(self) -> str:
        """The name of the condition in messages."""
        kind = "The invariant of column" if self.is_invariant else "CHECK constraint"
        return f"{kind} {self.name} ({self.text})"


def table_constraints(schema: StructType, configuration: Mapping[str, str]) -> list[Constraint]:
    """The CHECK constraints and column invariants of a table, parsed.

    Args:
        schema: the table's schema.
        configuration: the table's `metaData.configuration`.

    Raises:
        ExpressionError: a condition cannot be parsed or resolved, so it cannot be enforced.
    """
    strings = [(path, text, True) for path, text in _invariants(schema, "")]
    strings += [
        (key[len(CONSTRAINT_PREFIX) :], text, False)
        for key, text in sorted(configuration.items())
        if key.lower().startswith(CONSTRAINT_PREFIX)
    ]
    constraints = []
    for name, text, is_invariant in strings:
        try:
            expression = resolve_stored(text, schema)
        except ExpressionError as error:
            raise ExpressionError(
                f"{'Invariant' if is_invariant else 'Constraint'} {name} ({text}) cannot be enforced.",
                cause=str(error),
                fix="Drop or rewrite the constraint, or write with an engine that supports its expression.",
            ) from error
        constraints.append(Constraint(name=name, text=text, expression=expression, is_invariant=is_invariant))
    return constraints


class ConstraintChecker:
    """The conditions of a table, parsed once, for rows that arrive in parts."""

    def __init__(self, *, schema: StructType, configuration: Mapping[str, str]) -> None:
        self._schema = schema
        self._constraints = table_constraints(schema, configuration)

    @property
    def constraints(self) -> list[Constraint]:
        """The parsed conditions."""
        return list(self._constraints)

    def check(self, data: pa.Table | pa.RecordBatch) -> None:
        """Check some rows.

        Raises:
            ConstraintViolationError: some rows break a condition; the message has their number and one
                of them.
            ExpressionError: a condition cannot be evaluated.
        """
        violations = find_null_violations(self._schema, data)
        if violations:
            raise null_violation_error(violations, data)
        for constraint in self._constraints:
            require(constraint.label, constraint.expression, data)

    def checked(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The same batches, each checked before it is returned."""
        return pa.RecordBatchReader.from_batches(reader.schema, self._checked(reader))

    def _checked(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            self.check(batch)
            yield batch


def require(label: str, condition: Expression, data: pa.Table | pa.RecordBatch) -> None:
    """Check that a condition is true for every row.

    Args:
        label: name of the condition, for the message.
        condition: the condition, resolved against the table's schema.
        data: the rows.

    Raises:
        ConstraintViolationError: the condition is false or null for some rows; the message has their number
            and one of them.
        ExpressionError: the condition cannot be evaluated.
    """
    satisfied = matches(condition, data)
    if not pc.all(satisfied, min_count=0).as_py():
        raise violation_error(label, data, satisfied)


def violation_error(
    label: str, data: pa.Table | pa.RecordBatch, satisfied: pa.Array
) -> ConstraintViolationError:
    """The error for rows that do not satisfy a condition.

    Args:
        label: name of the condition.
        data: the rows.
        satisfied: per row, whether the condition is true; no nulls; not all true.
    """
    broken = pc.invert(satisfied)
    count = pc.sum(broken).as_py()
    position = pc.index(broken, True).as_py()
    row = data.slice(position, 1).to_pylist()[0]
    return ConstraintViolationError(
        f"{label} is violated by {count} of {data.num_rows} rows.",
        cause=f"The condition is not true, for example, for row {position}: {row}",
        fix="Correct or drop these rows, or change the condition.",
    )


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


def _invariants(schema: StructType, prefix: str) -> Iterator[tuple[str, str]]:
    for field in schema:
        text = _invariant_string(field)
        if text is not None:
            yield f"{prefix}{field.name}", text
        if isinstance(field.data_type, StructType):
            yield from _invariants(field.data_type, f"{prefix}{field.name}.")


def _invariant_string(field: StructField) -> str | None:
    raw = field.metadata.get(INVARIANTS_KEY)
    if raw is None:
        return None
    try:
        document = orjson.loads(raw) if isinstance(raw, str) else raw
        return str(document["expression"]["expression"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise ExpressionError(
            f"The invariant of column {field.name} cannot be read.",
            cause=f"{INVARIANTS_KEY} is {raw!r}.",
            fix="Correct the column's metadata.",
        ) from error
