"""Which rows broke which rule, and how many: a second look at the source after a load has failed.

Spark stops at the first row that breaks a rule. To correct a file its author needs all the rules that were
broken, the number of rows and some of them, so the source is read once more with nothing that can fail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_core.errors import ConstraintViolationError, DeltaError
from delta_core.schema.types import StructType
from spark_jobs.loading.source import watch_source
from spark_jobs.loading.source_params import Source
from spark_jobs.writer.checks import Check, row_json
from spark_jobs.writer.columns import conform_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MAX_ROWS = 5
"""Rows that are shown of each rule."""
MAX_RULES = 10
"""Rules of which rows are shown; all of them are counted."""
MAX_ROW_CHARACTERS = 2_000
"""A longer row is shown as its first so many characters of JSON."""

_MESSAGE_ROW_CHARACTERS = 300
_ADDRESS = "Correct or filter the rows; nothing of the load is visible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One rule that rows of a batch break.

    Attributes:
        rule: its name: a constraint's, `NOT NULL column`, `TYPE column`, `replaceWhere`.
        text: the rule as its author wrote it.
        count: how many rows break it. A row with a value of a wrong type counts for that rule alone.
        rows: some of them, as JSON objects; as cut text when they are long; none when rows are not shown.
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
    schema: StructType,
    exact: bool = True,
    show_rows: bool = True,
) -> tuple[Violation, ...]:
    """The rules that rows of the source break, those with the most rows first.

    Cost: one pass over the source that counts, then one for each rule shown, which ends at its fifth row.

    Args:
        spark: the session.
        source: the files of the load.
        checks: what each row had to satisfy.
        types: as for `read_source`.
        schema: what the rows were given for writing.
        exact: as for `read_source`.
        show_rows: False leaves the rows where they are.
    """
    from pyspark.sql import functions as fn

    watched = watch_source(spark, source, types=types, exact=exact)
    notes = watched.notes
    frame = conform_columns(watched.frame, StructType((*schema.fields, *notes.fields)))
    rules = [
        (f"TYPE {field.name}", f"{field.name} is of type {field.data_type}", fn.col(note))
        for field, note in zip(watched.casts, notes.names, strict=False)
    ]
    sound = fn.lit(True)
    for _, _, wrong in rules:
        sound = sound & ~wrong
    rules += [(check.name, check.text, sound & check.broken()) for check in _distinct(checks)]
    if not rules:
        return ()
    counts = frame.agg(*[fn.count(fn.when(broken, 1)) for _, _, broken in rules]).collect()[0]
    found = sorted(
        ((rules[index], count) for index, count in enumerate(counts) if count), key=lambda item: -item[1]
    )
    raw = fn.col(notes.names[-1]) if watched.casts else row_json(schema.names)
    violations = []
    for number, ((name, text, broken), count) in enumerate(found):
        row = raw if name.startswith("TYPE ") else row_json(schema.names)
        shown = _rows(frame, broken, row) if show_rows and number < MAX_RULES else ()
        violations.append(Violation(rule=name, text=text, count=count, rows=shown))
    return tuple(violations)


def violations_error(violations: Sequence[Violation]) -> ConstraintViolationError:
    """One error for all of them: every rule with its count, and rows of the first ones."""
    counted = "; ".join(
        f"{item.count} {'row breaks' if item.count == 1 else 'rows break'} {item.rule!r} ({item.text})"
        for item in violations
    )
    shown = "; ".join(
        f"{item.rule!r}: {', '.join(_short(row) for row in item.rows)}" for item in violations if item.rows
    )
    return ConstraintViolationError(
        f"Rows of the source break the contract or the table's rules: {counted}.",
        cause=f"Such rows are, for {shown}" if shown else "",
        fix=_ADDRESS,
    )


def without_rows(error: DeltaError) -> DeltaError:
    """The error without what it quotes from the source; of Spark's own text its condition stays."""
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


def _short(row: Mapping[str, Any] | str) -> str:
    text = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
    return text if len(text) <= _MESSAGE_ROW_CHARACTERS else text[:_MESSAGE_ROW_CHARACTERS] + "..."


def _distinct(checks: Sequence[Check]) -> list[Check]:
    """The checks without repetition: table and contract often demand the same."""
    seen: dict[tuple[str, object], Check] = {}
    for check in checks:
        seen.setdefault((check.name, check.broken_if), check)
    return list(seen.values())
