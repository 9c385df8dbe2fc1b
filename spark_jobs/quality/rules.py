"""Expectations as compiled: values that say which rows are asked, and what of them.

A rule travels to Spark's workers and is applied to Arrow batches there, or to the batches of files in the
driver; it is the same code, so the answer cannot depend on where it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import referenced_names
from delta_core.expressions.evaluate import matches
from delta_core.schema.types import DataType
from spark_jobs.quality.row_tests import RowTest
from spark_jobs.quality.suite_values import plain_column

Mask = np.ndarray[Any, Any]


class Ignore(StrEnum):
    """Which rows are not asked, by their missing values."""

    NONE = "none"
    ANY_MISSING = "any missing"
    ALL_MISSING = "all missing"


class Statistic(StrEnum):
    """What is found out about all rows that are asked."""

    ROWS = "rows"
    MIN = "minimum"
    MAX = "maximum"
    SUM = "sum"
    MEAN = "mean"
    STDEV = "standard deviation"
    PRESENT = "proportion of values that are not missing"
    IN_SET = "distinct values in the set"
    CONTAIN_SET = "distinct values contain the set"
    EQUAL_SET = "distinct values equal the set"


class Counting(StrEnum):
    """What is found out about how often each value occurs."""

    DISTINCT = "distinct values"
    UNIQUE = "proportion of distinct values"
    MOST_COMMON = "most common value"
    MEDIAN = "median"
    QUANTILES = "quantiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an observed number must be between, exactly."""

    low: Any = None
    high: Any = None
    strict_low: bool = False
    strict_high: bool = False

    def hold(self, observed: Any) -> bool:
        """Whether it is; there being nothing to observe, it is not."""
        if observed is None:
            return False
        above = self.low is None or (observed > self.low if self.strict_low else observed >= self.low)
        below = self.high is None or (observed < self.high if self.strict_high else observed <= self.high)
        return above and below


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which rows are asked.

    Attributes:
        columns: that the question is about.
        where: the row condition, resolved; rows where it is false or null are not asked.
    """

    columns: tuple[str, ...] = ()
    where: Expression | None = None
    ignore: Ignore = Ignore.NONE

    @property
    def needed(self) -> frozenset[str]:
        """The columns that must be read."""
        return frozenset(self.columns) | (frozenset() if self.where is None else referenced_names(self.where))

    def mask(self, rows: Rows) -> Mask:
        """True for the rows that are asked."""
        asked = np.ones(rows.count, dtype=bool) if self.where is None else rows.meeting(self.where)
        if self.ignore is Ignore.NONE:
            return asked
        missing = [rows.missing(name) for name in self.columns]
        combine = np.logical_or if self.ignore is Ignore.ANY_MISSING else np.logical_and
        left_out: Mask = reduce(combine, missing)
        kept: Mask = asked & ~left_out
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRule:
    """Each row is asked a question of its own.

    Attributes:
        mostly: the share of asked rows that must answer true.
    """

    asked: Asked
    test: RowTest
    mostly: Fraction = Fraction(1)

    def judge(self, rows: Rows) -> tuple[Mask, Mask]:
        """(the rows that are asked, those of them that do not meet the expectation)."""
        asked = self.asked.mask(rows)
        answer = self.test.hold([rows.column(name) for name in self.asked.columns])
        return asked, asked & ~true_where(answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueRule:
    """No two of the asked rows have the same values; all copies miss it, not all but one."""

    asked: Asked
    mostly: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticRule:
    """A number about all asked rows, found in one pass.

    Attributes:
        data_type: the column's; None when it is about none.
        members: the set, in the column's type.
    """

    asked: Asked
    statistic: Statistic
    data_type: DataType | None = None
    limits: Limits = Limits()
    members: pa.Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingRule:
    """A question about how often each value occurs.

    Attributes:
        members: the set that the most common value must be in, as Python's values.
        ties: whether one of several most common values is enough.
        quantiles: with what each must be between.
    """

    asked: Asked
    counting: Counting
    data_type: DataType
    limits: Limits = Limits()
    members: frozenset[Any] = frozenset()
    ties: bool = False
    quantiles: tuple[tuple[Fraction, Limits], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRule:
    """The schema or the number of rows has answered already."""

    success: bool
    observed: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryRule:
    """Great Expectations judges, on pandas, whatever the number of rows.

    Attributes:
        asked: the columns that it is about, none for all, and the row condition.
    """

    asked: Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class MisfitRule:
    """It does not fit its columns, and its severity lets that pass: it is reported."""

    reason: str


Rule = RowRule | UniqueRule | StatisticRule | CountingRule | SettledRule | LibraryRule | MisfitRule
AskingRule = RowRule | UniqueRule | StatisticRule | CountingRule


@dataclass(slots=True)
class Rows:
    """A batch of rows as rules see it: NaN is missing, and each column is converted once."""

    batch: pa.RecordBatch
    _columns: dict[str, pa.Array] = field(default_factory=dict)
    _meeting: dict[int, Mask] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.batch.num_rows)

    def column(self, name: str) -> pa.Array:
        """A column as it is judged."""
        if name not in self._columns:
            self._columns[name] = plain_column(self.batch.column(name))
        return self._columns[name]

    def missing(self, name: str) -> Mask:
        """True where the value is missing."""
        return np.asarray(pc.is_null(self.column(name)))

    def meeting(self, condition: Expression) -> Mask:
        """True where a condition holds."""
        # Not by its value: in Python the constants 1 and true are equal.
        key = id(condition)
        if key not in self._meeting:
            names = sorted(referenced_names(condition))
            data = pa.record_batch([self._typed(name) for name in names], names=names)
            self._meeting[key] = true_where(matches(condition, data if names else self.batch))
        return self._meeting[key]

    def _typed(self, name: str) -> pa.Array:
        """The column in the type that the condition was resolved for."""
        return self.column(name).cast(self.batch.schema.field(name).type)


def true_where(answer: pa.Array | pa.ChunkedArray) -> Mask:
    """True where an answer is true: neither false nor null."""
    if pa.types.is_null(answer.type):
        return np.zeros(len(answer), dtype=bool)
    mask: Mask = np.asarray(pc.fill_null(answer, False), dtype=bool)
    return mask


def needed_columns(rules: Sequence[Rule]) -> set[str]:
    """The columns that the rules read of each batch."""
    return {
        name
        for rule in rules
        if isinstance(rule, (RowRule, UniqueRule, StatisticRule, CountingRule))
        for name in rule.asked.needed
    }
