"""Counts of distinct values, and the rows whose values occur in another row too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.jobs.params.quality import MAX_SAMPLES
from spark_jobs.quality.rules import Counting, CountingRule, Rows, UniqueRule
from spark_jobs.quality.suite_values import is_exact
from spark_jobs.writer.staged_files import Positions

POSITION_KEY: Final = "position"
MAX_LISTED: Final = 100_000
"""The maximum number of equally most common values that the driver lists."""


class TooManyValuesError(ValueError):
    """More than `MAX_LISTED` values are equally most common."""


def key_name(index: int) -> str:
    """The internal name of a key column, because the rows' column names may contain any character."""
    return f"k{index}"


def keys_of(rule: UniqueRule | CountingRule, rows: Rows, positions: Positions) -> pa.RecordBatch:
    """The values of the selected rows, with the rows' positions."""
    selection = pa.array(rule.selection.mask(rows))
    columns = [rows.column(name).filter(selection) for name in rule.selection.columns]
    names = [key_name(index) for index in range(len(columns))]
    return pa.record_batch(
        [*columns, pa.array(positions, pa.int64()).filter(selection)], names=[*names, POSITION_KEY]
    )


def repeated(keys: pa.Table) -> Positions:
    """The positions of the rows whose values occur in another row too. Nulls are equal to each other."""
    ids: np.ndarray[Any, Any] = np.zeros(keys.num_rows, dtype=np.int64)
    for name in keys.column_names:
        if name == POSITION_KEY:
            continue
        column = keys.column(name).combine_chunks()
        encoded = column.dictionary_encode()
        codes = np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), len(encoded.dictionary)))
        combined = ids * (len(encoded.dictionary) + 1) + codes
        ids = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    positions = np.asarray(keys.column(POSITION_KEY), dtype=np.int64)
    return np.sort(positions[np.bincount(ids)[ids] > 1]) if len(ids) else positions


class CountedValues(Protocol):
    """The distinct values of a column with their counts.

    Attributes:
        distinct: the number of distinct values.
        total: the number of rows with a value.
    """

    distinct: int
    total: int

    def most_common(self) -> list[Any]:
        """The most common values: all with the highest count, at most `MAX_LISTED` + 1."""
        ...

    def at(self, ranks: Sequence[int]) -> list[Any]:
        """The values at these ranks, which are ascending. Rank 0 is the smallest of all `total` values."""
        ...


class ArrowCounts:
    """Values counted in this process, with Arrow."""

    def __init__(self, values: pa.ChunkedArray) -> None:
        counted = pc.value_counts(values.combine_chunks())
        self._values = counted.field("values")
        self._counts = np.asarray(counted.field("counts"))
        self.distinct = len(self._values)
        self.total = int(self._counts.sum())

    def most_common(self) -> list[Any]:
        if not self.distinct:
            return []
        common = self._values.filter(pa.array(self._counts == self._counts.max()))
        listed: list[Any] = common.slice(0, MAX_LISTED + 1).to_pylist()
        return listed

    def at(self, ranks: Sequence[int]) -> list[Any]:
        order = np.asarray(pc.sort_indices(self._values))
        ends = np.cumsum(self._counts[order])
        common = order[np.searchsorted(ends, np.asarray(ranks), side="right")]
        return [self._values[int(index)].as_py() for index in common]


def observe(rule: CountingRule, counted: CountedValues) -> tuple[bool, Any]:
    """(whether the expectation holds, what was observed).

    Raises:
        TooManyValuesError: more than `MAX_LISTED` values are equally most common.
    """
    if rule.counting is Counting.DISTINCT:
        return rule.limits.hold(counted.distinct), counted.distinct
    if rule.counting is Counting.UNIQUE:
        share = Fraction(counted.distinct, counted.total) if counted.total else Fraction(0)
        return rule.limits.hold(share), float(share)
    if rule.counting is Counting.MOST_COMMON:
        common = counted.most_common()
        if len(common) > MAX_LISTED:
            raise TooManyValuesError(f"More than {MAX_LISTED} values are equally most common.")
        members = [value for value in common if value in rule.members]
        return bool(members) and (rule.ties or len(common) == 1), common[:MAX_SAMPLES]
    if rule.counting is Counting.MEDIAN:
        median = _median(rule, counted)
        return rule.limits.hold(median), None if median is None else float(median)
    return _quantiles(rule, counted)


def _median(rule: CountingRule, counted: CountedValues) -> Fraction | float | None:
    if not counted.total:
        return None
    low, high = counted.at([(counted.total - 1) // 2, counted.total // 2])
    if is_exact(rule.data_type):
        return (Fraction(low) + Fraction(high)) / 2
    if math.isfinite(low) and math.isfinite(high):
        return float((Fraction(low) + Fraction(high)) / 2)
    middle = low + high
    return None if math.isnan(middle) else middle


def _quantiles(rule: CountingRule, counted: CountedValues) -> tuple[bool, Any]:
    """Each quantile is the smallest value for which at least the share of all values is less or equal."""
    shares = [share for share, _ in rule.quantiles]
    values: list[Any] = [None] * len(shares)
    if counted.total:
        ranks = [max(math.ceil(share * counted.total), 1) - 1 for share in shares]
        distinct = sorted(set(ranks))
        by_rank = dict(zip(distinct, counted.at(distinct), strict=True))
        values = [by_rank[rank] for rank in ranks]
    exact = is_exact(rule.data_type)
    success = all(
        limits.hold(None if value is None else Fraction(value) if exact else value)
        for (_, limits), value in zip(rule.quantiles, values, strict=True)
    )
    return success, {"quantiles": [float(share) for share in shares], "values": values}
