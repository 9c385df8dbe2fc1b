"""Tests of single rows, on Arrow columns.

The driver and Spark's tasks run the same implementation on their batches. A result is true, false or null, as
in SQL. A row meets an expectation only when the result is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.arithmetic import compare
from delta_core.expressions.ast import ComparisonOperator
from spark_jobs.quality.patterns import matches, string_of
from spark_jobs.quality.string_checks import StringCheck
from spark_jobs.quality.suite_values import Bounds

Columns = Sequence[pa.Array]


class RowTest(Protocol):
    """A test of the values of a row in some columns."""

    def hold(self, columns: Columns) -> pa.Array:
        """The result for each row."""
        ...


@dataclass(frozen=True, slots=True)
class IsPresent:
    """The value is not null, or is null (`present` false)."""

    present: bool

    def hold(self, columns: Columns) -> pa.Array:
        return pc.is_valid(columns[0]) if self.present else pc.is_null(columns[0])


@dataclass(frozen=True, slots=True)
class IsWithin:
    """The value is between bounds."""

    bounds: Bounds

    def hold(self, columns: Columns) -> pa.Array:
        return self.bounds.hold(columns[0])


@dataclass(frozen=True, slots=True)
class IsListed:
    """The value is in a set, or is not in the set (`listed` false)."""

    values: pa.Array
    listed: bool = True

    def hold(self, columns: Columns) -> pa.Array:
        found = pc.is_in(columns[0], value_set=self.values)
        return found if self.listed else pc.invert(found)


@dataclass(frozen=True, slots=True)
class HasMatch:
    """The string matches any (or each) pattern, or matches no pattern (`match_expected` false)."""

    patterns: tuple[str, ...]
    all_of_them: bool = False
    match_expected: bool = True

    def hold(self, columns: Columns) -> pa.Array:
        found = matches(string_of(columns[0]), self.patterns, all_of_them=self.all_of_them)
        return found if self.match_expected else pc.invert(found)


@dataclass(frozen=True, slots=True)
class HasLength:
    """The string's number of characters (code points) is between bounds."""

    bounds: Bounds

    def hold(self, columns: Columns) -> pa.Array:
        return self.bounds.hold(pc.utf8_length(string_of(columns[0])).cast(pa.int64()))


@dataclass(frozen=True, slots=True)
class PassesCheck:
    """The string passes a check that a Python library defines."""

    check: StringCheck

    def hold(self, columns: Columns) -> pa.Array:
        return self.check.hold(columns[0])


@dataclass(frozen=True, slots=True)
class Compares:
    """`A operator B`; null when A or B is null."""

    operator: ComparisonOperator

    def hold(self, columns: Columns) -> pa.Array:
        return compare(self.operator, columns[0], columns[1])


@dataclass(frozen=True, slots=True)
class IsListedPair:
    """The pair of values is in a set of pairs. A null in the set equals a null in the row.

    Attributes:
        left, right: the pairs' values in the columns' types.
    """

    left: pa.Array
    right: pa.Array

    def hold(self, columns: Columns) -> pa.Array:
        found: pa.Array = pc.and_(pa.scalar(False), pc.is_null(columns[0]))
        for left, right in zip(self.left, self.right, strict=True):
            found = pc.or_(found, pc.and_(_same(columns[0], left), _same(columns[1], right)))
        return found


@dataclass(frozen=True, slots=True)
class AddsUp:
    """The sum of the values is `total`; null when one value is null, as for `+` in SQL.

    Attributes:
        exact: whether all columns are integers or decimals, which are added exactly. Otherwise the values are
            added as doubles, in the order of the list.
    """

    total: Decimal
    exact: bool

    def hold(self, columns: Columns) -> pa.Array:
        if not self.exact:
            return pc.equal(reduce(pc.add, [as_doubles(column) for column in columns]), float(self.total))
        expected = Fraction(self.total)
        sums = [
            None if None in row else sum(map(Fraction, row)) == expected
            for row in zip(*[column.to_pylist() for column in columns], strict=True)
        ]
        return pa.array(sums, pa.bool_())


@dataclass(frozen=True, slots=True)
class AreAllEqual:
    """All values are equal. Nulls are equal to each other."""

    def hold(self, columns: Columns) -> pa.Array:
        first = columns[0]
        same = [compare(ComparisonOperator.EQ_NULL_SAFE, first, other) for other in columns[1:]]
        return reduce(pc.and_, same, pc.or_(pc.is_null(first), pc.is_valid(first)))


@dataclass(frozen=True, slots=True)
class AreAllDistinct:
    """No two values are equal. Nulls are equal to each other."""

    def hold(self, columns: Columns) -> pa.Array:
        found: pa.Array = pc.or_(pc.is_null(columns[0]), pc.is_valid(columns[0]))
        for index, left in enumerate(columns):
            for right in columns[index + 1 :]:
                same = compare(ComparisonOperator.EQ_NULL_SAFE, left, right)
                found = pc.and_(found, pc.invert(same))
        return found


def as_doubles(column: pa.Array) -> pa.Array:
    """Numbers as doubles. A decimal becomes the nearest double."""
    if pa.types.is_decimal(column.type):
        return column.cast(pa.string()).cast(pa.float64())
    return column.cast(pa.float64(), safe=False)


def _same(column: pa.Array, value: Any) -> pa.Array:
    return pc.is_null(column) if not value.is_valid else pc.fill_null(pc.equal(column, value), False)
