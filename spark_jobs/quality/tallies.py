"""What a rule has found out so far: parts that are added up, whoever found them and in whatever order."""

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
from delta_core.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType
from spark_jobs.quality.exact_sums import power_sums
from spark_jobs.quality.params import MAX_SAMPLES
from spark_jobs.quality.rules import AskingRule, RowRule, Rows, Statistic, StatisticRule
from spark_jobs.quality.staged import Positions
from spark_jobs.quality.suite_values import is_exact

EVALUATION_ERRORS: Final = (DeltaError, pa.ArrowException, ArithmeticError, ValueError)
"""What the values of rows may raise: the expectation is then one that could not be evaluated."""

_SUMS: Final = (Statistic.SUM, Statistic.MEAN, Statistic.STDEV)
_SETS: Final = (Statistic.IN_SET, Statistic.CONTAIN_SET, Statistic.EQUAL_SET)


@dataclass(slots=True)
class Tally:
    """Figures about the rows that were asked.

    Attributes:
        rows: how many were asked.
        present: of a proportion, those that have a value.
        unexpected: those that do not meet the expectation.
        first: the first positions of these.
        total, squares: exact sums of the finite values.
        infinite: how many values are minus and plus infinity.
        low, high: the extremes.
        seen: the members of a set that occur, by their index.
        error: why the rule could not be applied.
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
        """Take another part's figures in."""
        self.rows += other.rows
        self.present += other.present
        self.unexpected += other.unexpected
        self.first = sorted([*self.first, *other.first])[:MAX_SAMPLES]
        self.total += other.total
        self.squares += other.squares
        self.infinite = (self.infinite[0] + other.infinite[0], self.infinite[1] + other.infinite[1])
        self.low = _of_both(self.low, other.low, min)
        self.high = _of_both(self.high, other.high, max)
        self.seen |= other.seen
        self.error = self.error if self.error is not None else other.error

    def to_json(self) -> str:
        """As text for the way from a task to the driver."""
        return json.dumps(
            {
                "counts": [self.rows, self.present, self.unexpected, *self.infinite],
                "first": self.first,
                "sums": [str(self.total), str(self.squares)],
                "extremes": [None if one is None else str(one) for one in (self.low, self.high)],
                "seen": sorted(self.seen),
                "error": self.error,
            }
        )


def tally_from_json(text: str, data_type: DataType | None) -> Tally:
    """What `to_json` wrote, its extremes in the type of the rule's column."""
    document: Mapping[str, Any] = json.loads(text)
    rows, present, unexpected, below, above = document["counts"]
    low, high = (None if one is None else _parse(one, data_type) for one in document["extremes"])
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


def tally_of(rule: AskingRule, rows: Rows, positions: Positions) -> tuple[Tally, Positions]:
    """(a batch's figures, the positions of its rows that do not meet the expectation).

    Of a rule that counts values, only how many rows are asked.

    Args:
        rule: what is asked.
        rows: the batch.
        positions: of its rows.
    """
    try:
        if isinstance(rule, RowRule):
            asked, bad = rule.judge(rows)
            return _of_masks(int(asked.sum()), np.sort(positions[bad]))
        if isinstance(rule, StatisticRule):
            return _of_statistic(rule, rows, positions)
        return Tally(rows=int(rule.asked.mask(rows).sum())), positions[:0]
    except EVALUATION_ERRORS as error:
        return Tally(error=str(error)[:500]), positions[:0]


def _of_masks(rows: int, bad: Positions) -> tuple[Tally, Positions]:
    return Tally(rows=rows, unexpected=len(bad), first=bad[:MAX_SAMPLES].tolist()), bad


def _of_statistic(rule: StatisticRule, rows: Rows, positions: Positions) -> tuple[Tally, Positions]:
    asked = rule.asked.mask(rows)
    count = int(asked.sum())
    if rule.statistic is Statistic.ROWS:
        return Tally(rows=count), positions[:0]
    name = rule.asked.columns[0]
    if rule.statistic is Statistic.PRESENT:
        return Tally(rows=count, present=int((asked & ~rows.missing(name)).sum())), positions[:0]
    values = rows.column(name).filter(pa.array(asked))
    if rule.statistic in _SETS:
        found = pc.index_in(values, value_set=rule.members)
        tally, bad = _of_masks(count, np.sort(positions[asked][np.asarray(pc.is_null(found))]))
        tally.seen = set(found.drop_null().unique().to_pylist())
        return tally, bad
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


def _of_both(left: Any, right: Any, choose: Callable[[Any, Any], Any]) -> Any:
    return right if left is None else left if right is None else choose(left, right)


def _parse(text: str, data_type: DataType | None) -> Any:
    if data_type == DATE:
        return datetime.date.fromisoformat(text)
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return datetime.datetime.fromisoformat(text)
    return Decimal(text) if data_type is not None and is_exact(data_type) else float(text)
