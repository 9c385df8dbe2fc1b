"""Violations of a failed load: the violated rules with row counts and sample rows.

Spark stops at the first row that violates a rule. To correct a file, its author needs all violated rules, the
number of rows and some of these rows. Therefore the source is read once more, with expressions that cannot
fail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_core.data.row_plan import RowPlan
from delta_core.errors import ConstraintViolationError, DeltaError
from delta_core.jobs.params.source import Source
from delta_core.schema.types import StructType
from spark_jobs.expressions.checks import Check, row_json
from spark_jobs.expressions.columns import conform_columns
from spark_jobs.expressions.new_rows import with_filled_columns
from spark_jobs.loading.source import watch_source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MAX_ROWS = 5
"""The number of sample rows per rule."""
MAX_RULES = 10
"""The number of rules with sample rows. The violations of all rules are counted."""
MAX_ROW_CHARACTERS = 2_000
"""The length to which a sample row's JSON is truncated."""

_MESSAGE_ROW_CHARACTERS = 300
_FIX = "Correct or filter the rows. Nothing was committed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One rule that rows of a batch violate.

    Attributes:
        rule: the rule's name: that of a constraint, `NOT NULL column`, `TYPE column` or `replaceWhere`.
        text: the rule as its author wrote it.
        count: how many rows violate it. A row with a mistyped value counts only for the `TYPE` rule.
        rows: sample rows as JSON objects, or as truncated JSON text; empty when rows are not shown.
    """

    rule: str
    text: str
    count: int
    rows: tuple[Mapping[str, Any] | str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The violation as a JSON object."""
        return {"rule": self.rule, "count": self.count, "rows": list(self.rows)}


def find_violations(
    spark: SparkSession,
    source: Source,
    checks: Sequence[Check],
    *,
    types: StructType | None,
    plan: RowPlan,
    exact: bool = True,
    show_rows: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[Violation, ...]:
    """The rules that rows of the source violate, sorted by the number of rows, largest first.

    Cost: one pass over the source to count, then one per rule with sample rows, which ends at the fifth row.

    Args:
        spark: the session.
        source: the files of the load.
        checks: the checks that each row had to pass.
        types: as for `read_source`.
        plan: the values of the columns that the source does not have.
        exact: as for `read_source`.
        show_rows: False omits sample rows.
        storage_options: as for `read_source`.
    """
    from pyspark.sql import functions as fn

    watched = watch_source(spark, source, types=types, exact=exact, storage_options=storage_options)
    notes = watched.notes
    schema = plan.plan.schema
    frame = conform_columns(watched.frame, StructType((*schema.fields, *notes.fields)))
    # Any number is as good as another one, because none of these rows is written.
    numbers = {name: fn.lit(0) for name in plan.numbered}
    frame = with_filled_columns(frame, plan, numbers, kept=notes.names)
    rules = [
        (f"TYPE {field.name}", f"{field.name} is of type {field.data_type}", fn.col(note))
        for field, note in zip(watched.casts, notes.names, strict=False)
    ]
    is_well_typed = fn.lit(True)
    for _, _, mistyped in rules:
        is_well_typed = is_well_typed & ~mistyped
    rules += [(check.name, check.text, is_well_typed & check.broken()) for check in _distinct(checks)]
    if not rules:
        return ()
    counts = frame.agg(*[fn.count(fn.when(broken, 1)) for _, _, broken in rules]).collect()[0]
    violated = sorted(
        ((rules[index], count) for index, count in enumerate(counts) if count), key=lambda item: -item[1]
    )
    source_row = fn.col(notes.names[-1]) if watched.casts else row_json(schema.names)
    violations = []
    for number, ((name, text, broken), count) in enumerate(violated):
        row = source_row if name.startswith("TYPE ") else row_json(schema.names)
        shown = _rows(frame, broken, row) if show_rows and number < MAX_RULES else ()
        violations.append(Violation(rule=name, text=text, count=count, rows=shown))
    return tuple(violations)


def violations_error(violations: Sequence[Violation]) -> ConstraintViolationError:
    """One error for all violations: every rule with its count, and sample rows of the first rules."""
    counted = "; ".join(
        f"{item.count} {'row violates' if item.count == 1 else 'rows violate'} {item.rule!r} ({item.text})"
        for item in violations
    )
    shown = "; ".join(
        f"{item.rule!r}: {', '.join(_truncated(row) for row in item.rows)}"
        for item in violations
        if item.rows
    )
    return ConstraintViolationError(
        f"Rows of the source violate the contract or the table's constraints: {counted}.",
        cause=f"Sample rows are, for {shown}." if shown else "",
        fix=_FIX,
    )


def without_rows(error: DeltaError) -> DeltaError:
    """The error without quoted values of the source. Of a message of Spark, only the condition is kept."""
    if isinstance(error, ConstraintViolationError):
        return ConstraintViolationError(error.problem, fix=error.fix)
    return type(error)(error.problem, cause=error.cause.partition(":")[0], fix=error.fix)


def _rows(frame: DataFrame, broken: Column, row: Column) -> tuple[Mapping[str, Any] | str, ...]:
    from pyspark.sql import functions as fn

    strings = frame.where(broken).select(fn.substring(row, 1, MAX_ROW_CHARACTERS + 1).alias("row"))
    return tuple(_row(item["row"]) for item in strings.limit(MAX_ROWS).collect())


def _row(text: str) -> Mapping[str, Any] | str:
    if len(text) > MAX_ROW_CHARACTERS:
        return text[:MAX_ROW_CHARACTERS] + "..."
    try:
        row = json.loads(text)
    except ValueError:
        return text
    return row if isinstance(row, dict) else text


def _truncated(row: Mapping[str, Any] | str) -> str:
    text = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
    return text if len(text) <= _MESSAGE_ROW_CHARACTERS else text[:_MESSAGE_ROW_CHARACTERS] + "..."


def _distinct(checks: Sequence[Check]) -> list[Check]:
    """The checks without duplicates: table and contract often have the same checks."""
    seen: dict[tuple[str, object], Check] = {}
    for check in checks:
        seen.setdefault((check.name, check.broken_if), check)
    return list(seen.values())
