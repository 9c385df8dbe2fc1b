"""Compiled expectations: rules that define which rows to evaluate, and how.

A rule is sent to Spark's workers and evaluated on Arrow batches there, or on the batches of files in the
driver. Both run the same code, so that the result does not depend on the engine.
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
from spark_jobs.quality.suite_values import normalized_column

Mask = np.ndarray[Any, Any]


class Ignore(StrEnum):
    """Which rows are not selected because of missing values."""

    NONE = "none"
    ANY_MISSING = "any missing"
    ALL_MISSING = "all missing"


class Statistic(StrEnum):
    """The statistics about all selected rows."""

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
    """The results that need the count of each distinct value."""

    DISTINCT = "distinct values"
    UNIQUE = "proportion of distinct values"
    MOST_COMMON = "most common value"
    MEDIAN = "median"
    QUANTILES = "quantiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Exact lower and upper limits of an observed value."""

    low: Any = None
    high: Any = None
    strict_low: bool = False
    strict_high: bool = False

    def hold(self, observed: Any) -> bool:
        """Whether the observed value is within the limits; False for None."""
        if observed is None:
            return False
        above = self.low is None or (observed > self.low if self.strict_low else observed >= self.low)
        below = self.high is None or (observed < self.high if self.strict_high else observed <= self.high)
        return above and below


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSelection:
    """The selection of the rows that a rule evaluates.

    Attributes:
        columns: the columns of the expectation.
        where: the resolved row condition. Rows for which it is false or null are not selected.
    """

    columns: tuple[str, ...] = ()
    where: Expression | None = None
    ignore: Ignore = Ignore.NONE

    @property
    def needed(self) -> frozenset[str]:
        """The columns that must be read."""
        return frozenset(self.columns) | (frozenset() if self.where is None else referenced_names(self.where))

    def mask(self, rows: Rows) -> Mask:
        """A mask that is true for the selected rows."""
        selection = np.ones(rows.count, dtype=bool) if self.where is None else rows.meeting(self.where)
        if self.ignore is Ignore.NONE:
            return selection
        missing = [rows.missing(name) for name in self.columns]
        combine = np.logical_or if self.ignore is Ignore.ANY_MISSING else np.logical_and
        ignored: Mask = reduce(combine, missing)
        selected: Mask = selection & ~ignored
        return selected


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRule:
    """A test of each row.

    Attributes:
        mostly: the share of selected rows that must pass the test.
    """

    selection: RowSelection
    test: RowTest
    mostly: Fraction = Fraction(1)

    def evaluate(self, rows: Rows) -> tuple[Mask, Mask]:
        """(mask of the selected rows, mask of the selected rows that do not meet the expectation)."""
        selection = self.selection.mask(rows)
        result = self.test.hold([rows.column(name) for name in self.selection.columns])
        return selection, selection & ~true_where(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueRule:
    """No two selected rows have the same values. All rows of a duplicate fail, not all but one."""

    selection: RowSelection
    mostly: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticRule:
    """A statistic about all selected rows, computed in one pass.

    Attributes:
        data_type: the column's type; None for a rule without a column.
        members: the set of values, in the column's type.
    """

    selection: RowSelection
    statistic: Statistic
    data_type: DataType | None = None
    limits: Limits = Limits()
    members: pa.Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingRule:
    """A rule that needs the count of each distinct value.

    Attributes:
        members: the set that must contain the most common value, as Python values.
        ties: whether one of several equally most common values is enough.
        quantiles: pairs of a quantile and its limits.
    """

    selection: RowSelection
    counting: Counting
    data_type: DataType
    limits: Limits = Limits()
    members: frozenset[Any] = frozenset()
    ties: bool = False
    quantiles: tuple[tuple[Fraction, Limits], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantRule:
    """A rule whose result is already known from the schema or the number of rows."""

    success: bool
    observed: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryRule:
    """A rule that Great Expectations evaluates, always with pandas.

    Attributes:
        selection: the row condition, and the columns of the expectation; empty for all columns.
    """

    selection: RowSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class InapplicableRule:
    """An expectation of the severity warning that does not apply to its columns. It is only reported."""

    reason: str


Rule = RowRule | UniqueRule | StatisticRule | CountingRule | ConstantRule | LibraryRule | InapplicableRule
EngineRule = RowRule | UniqueRule | StatisticRule | CountingRule


@dataclass(slots=True)
class Rows:
    """A batch of rows, prepared for rules: NaN becomes null, and each column is converted once."""

    batch: pa.RecordBatch
    _columns: dict[str, pa.Array] = field(default_factory=dict)
    _meeting: dict[int, Mask] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.batch.num_rows)

    def column(self, name: str) -> pa.Array:
        """A column in the form for evaluation; see `normalized_column`."""
        if name not in self._columns:
            self._columns[name] = normalized_column(self.batch.column(name))
        return self._columns[name]

    def missing(self, name: str) -> Mask:
        """A mask that is true for null values."""
        return np.asarray(pc.is_null(self.column(name)))

    def meeting(self, condition: Expression) -> Mask:
        """A mask that is true for rows that match a condition."""
        # The key is the identity, not the value: in Python the constants 1 and true are equal.
        key = id(condition)
        if key not in self._meeting:
            names = sorted(referenced_names(condition))
            data = pa.record_batch([self._typed(name) for name in names], names=names)
            self._meeting[key] = true_where(matches(condition, data if names else self.batch))
        return self._meeting[key]

    def _typed(self, name: str) -> pa.Array:
        """The column in the type that the condition was resolved for."""
        return self.column(name).cast(self.batch.schema.field(name).type)


def true_where(result: pa.Array | pa.ChunkedArray) -> Mask:
    """A mask that is true where the result is true, and false where it is false or null."""
    if pa.types.is_null(result.type):
        return np.zeros(len(result), dtype=bool)
    mask: Mask = np.asarray(pc.fill_null(result, False), dtype=bool)
    return mask


def needed_columns(rules: Sequence[Rule]) -> set[str]:
    """The columns that the rules read of each batch."""
    return {
        name
        for rule in rules
        if isinstance(rule, (RowRule, UniqueRule, StatisticRule, CountingRule))
        for name in rule.selection.needed
    }
