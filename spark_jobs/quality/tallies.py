"""Partial results of rules. They can be added in any order, from any thread or task."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import DeltaError
from delta_core.jobs.params.quality import MAX_SAMPLES
from delta_core.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType
from spark_jobs.quality.exact_sums import power_sums
from spark_jobs.quality.rules import EngineRule, RowRule, Rows, Statistic, StatisticRule
from spark_jobs.quality.suite_values import is_exact
from spark_jobs.writer.staged_files import Positions

EVALUATION_ERRORS: Final = (DeltaError, pa.ArrowException, ArithmeticError, ValueError)
"""Errors that values of rows may cause. The expectation then counts as not evaluated."""

_SUMS: Final = (Statistic.SUM, Statistic.MEAN, Statistic.STDEV)
_SETS: Final = (Statistic.IN_SET, Statistic.CONTAIN_SET, Statistic.EQUAL_SET)


@dataclass(slots=True)
class Tally:
    """The metrics of one rule about its selected rows.

    Attributes:
        rows: the number of selected rows.
        present: for a proportion, the number of rows with a value.
        unexpected: the number of rows that do not meet the expectation.
        first: the first positions of unexpected rows.
        total, squares: the exact sum and sum of squares of the finite values.
        infinite: the numbers of values that are minus infinity and plus infinity.
        low, high: the minimum and the maximum.
        seen: the indexes of the set's members that occur.
        error: the reason why the rule could not be evaluated.
    """

    rows: int = 0
    present: int = 0
    unexpected: int = 0
    first: list[int] = field(default_factory=list)
    total: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)
    infinite: tuple[int, int] = (0, 0)
    low: Any = None
    high: Any = None
    seen: set[int] = field(default_factory=set)
    error: str | None = None

    def add(self, other: Tally) -> None:
        """Add the tally `other` of another part of the rows to this tally."""
        self.rows += other.rows
        self.present += other.present
        self.unexpected += other.unexpected
        self.first = sorted([*self.first, *other.first])[:MAX_SAMPLES]
        self.total += other.total
        self.squares += other.squares
        self.infinite = (self.infinite[0] + other.infinite[0], self.infinite[1] + other.infinite[1])
        self.low = _combined(self.low, other.low, min)
        self.high = _combined(self.high, other.high, max)
        self.seen |= other.seen
        self.error = self.error if self.error is not None else other.error

    def to_json(self) -> str:
        """The tally as JSON text, which a task sends to the driver."""
        return json.dumps(
            {
                "counts": [self.rows, self.present, self.unexpected, *self.infinite],
                "first": self.first,
                "sums": [str(self.total), str(self.squares)],
                "extremes": [None if value is None else str(value) for value in (self.low, self.high)],
                "seen": sorted(self.seen),
                "error": self.error,
            }
        )


def tally_from_json(text: str, data_type: DataType | None) -> Tally:
    """Parse the result of `to_json`. Minimum and maximum have the type of the rule's column."""
    document: Mapping[str, Any] = json.loads(text)
    rows, present, unexpected, below, above = document["counts"]
    low, high = (None if value is None else _parse(value, data_type) for value in document["extremes"])
    return Tally(
        rows=rows,
        present=present,
        unexpected=unexpected,
        first=document["first"],
        total=Fraction(document["sums"][0]),
        squares=Fraction(document["sums"][1]),
        infinite=(below, above),
        low=low,
        high=high,
        seen=set(document["seen"]),
        error=document["error"],
    )


def tally_of(rule: EngineRule, rows: Rows, positions: Positions) -> tuple[Tally, Positions]:
    """(the tally of a batch, the positions of its rows that do not meet the expectation).

    For a rule that counts values, the tally has only the number of selected rows.

    Args:
        rule: the rule.
        rows: the batch.
        positions: the positions of the batch's rows.
    """
    try:
        if isinstance(rule, RowRule):
            selection, unexpected_positions = rule.evaluate(rows)
            return _row_tally(int(selection.sum()), np.sort(positions[unexpected_positions]))
        if isinstance(rule, StatisticRule):
            return _statistic_tally(rule, rows, positions)
        return Tally(rows=int(rule.selection.mask(rows).sum())), positions[:0]
    except EVALUATION_ERRORS as error:
        return Tally(error=str(error)[:500]), positions[:0]


def _row_tally(rows: int, unexpected_positions: Positions) -> tuple[Tally, Positions]:
    return Tally(
        rows=rows, unexpected=len(unexpected_positions), first=unexpected_positions[:MAX_SAMPLES].tolist()
    ), unexpected_positions


def _statistic_tally(rule: StatisticRule, rows: Rows, positions: Positions) -> tuple[Tally, Positions]:
    selection = rule.selection.mask(rows)
    count = int(selection.sum())
    if rule.statistic is Statistic.ROWS:
        return Tally(rows=count), positions[:0]
    name = rule.selection.columns[0]
    if rule.statistic is Statistic.PRESENT:
        return Tally(rows=count, present=int((selection & ~rows.missing(name)).sum())), positions[:0]
    values = rows.column(name).filter(pa.array(selection))
    if rule.statistic in _SETS:
        found = pc.index_in(values, value_set=rule.members)
        tally, unexpected_positions = _row_tally(
            count, np.sort(positions[selection][np.asarray(pc.is_null(found))])
        )
        tally.seen = set(found.drop_null().unique().to_pylist())
        return tally, unexpected_positions
    tally = Tally(rows=count)
    if rule.statistic in _SUMS:
        if pa.types.is_floating(values.type):
            above = pc.equal(values, math.inf)
            below = pc.equal(values, -math.inf)
            tally.infinite = (_count(below), _count(above))
            values = values.filter(pc.is_finite(values))
        squares = rule.statistic is Statistic.STDEV
        tally.total, tally.squares = power_sums(values, squares=squares)
    elif count:
        extremes = pc.min_max(values)
        tally.low, tally.high = extremes["min"].as_py(), extremes["max"].as_py()
        if rule.data_type is not None and is_exact(rule.data_type):
            tally.low, tally.high = Decimal(tally.low), Decimal(tally.high)
    return tally, positions[:0]


def _count(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _combined(left: Any, right: Any, choose: Callable[[Any, Any], Any]) -> Any:
    return right if left is None else left if right is None else choose(left, right)


def _parse(text: str, data_type: DataType | None) -> Any:
    if data_type == DATE:
        return datetime.date.fromisoformat(text)
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return datetime.datetime.fromisoformat(text)
    return Decimal(text) if data_type is not None and is_exact(data_type) else float(text)
