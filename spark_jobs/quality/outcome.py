"""The outcomes of a suite's expectations."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from delta_core.jobs.params.quality import Severity
from delta_core.schema.types import DecimalType
from spark_jobs.quality.expectations_library import exception_text
from spark_jobs.quality.rules import RowRule, Statistic, StatisticRule, UniqueRule
from spark_jobs.quality.suite import PlannedExpectation
from spark_jobs.quality.suite_values import is_exact
from spark_jobs.quality.tallies import Tally
from spark_jobs.writer.staged_files import Positions


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationOutcome:
    """One expectation's result.

    Attributes:
        unexpected_count, unexpected_percent: the rows that do not meet a row-level expectation, and their
            percentage of the selected rows.
        observed: the observed value of an expectation about the whole batch.
        samples: some unexpected values.
        rows: positions of the rows that do not meet the expectation, in the order of the staged files; None
            when they are not known, or when the expectations fail for more than `MAX_COLLECTED_ROWS` rows.
        error: the reason why the expectation could not be evaluated.
    """

    planned: PlannedExpectation
    success: bool
    unexpected_count: int | None = None
    unexpected_percent: float | None = None
    observed: Any = None
    samples: tuple[Any, ...] = ()
    rows: Positions | None = field(default=None, repr=False, hash=False, compare=False)
    error: str | None = None

    @property
    def name(self) -> str:
        """The display name: the type with its columns."""
        return self.planned.spec.name

    @property
    def blocks(self) -> bool:
        """Whether the expectation failed and has the severity critical."""
        return not self.success and self.planned.spec.severity is Severity.CRITICAL


def outcome_of_rows(planned: PlannedExpectation, tally: Tally) -> ExpectationOutcome:
    """The outcome of a row-level expectation, without row positions and samples."""
    if tally.error is not None:
        return ExpectationOutcome(planned=planned, success=False, error=tally.error)
    assert isinstance(planned.rule, (RowRule, UniqueRule))
    good = tally.rows - tally.unexpected
    return ExpectationOutcome(
        planned=planned,
        success=good >= planned.rule.mostly * tally.rows,
        unexpected_count=tally.unexpected,
        unexpected_percent=100 * tally.unexpected / tally.rows if tally.rows else 0.0,
    )


def outcome_of_statistic(planned: PlannedExpectation, tally: Tally) -> ExpectationOutcome:
    """The outcome of an expectation about a statistic that one pass computes."""
    if tally.error is not None:
        return ExpectationOutcome(planned=planned, success=False, error=tally.error)
    rule = planned.rule
    assert isinstance(rule, StatisticRule)
    members = 0 if rule.members is None else len(rule.members)
    has_all, has_only = len(tally.seen) == members, tally.unexpected == 0
    if rule.statistic in (Statistic.IN_SET, Statistic.CONTAIN_SET, Statistic.EQUAL_SET):
        success = (has_only or rule.statistic is Statistic.CONTAIN_SET) and (
            has_all or rule.statistic is Statistic.IN_SET
        )
        return ExpectationOutcome(planned=planned, success=success)
    observed = _observed(rule, tally)
    return ExpectationOutcome(
        planned=planned, success=rule.limits.hold(observed), observed=_shown(observed, rule)
    )


def outcome_of_library(
    planned: PlannedExpectation, result: Any, *, samples: int, rows: Positions | None
) -> ExpectationOutcome:
    """Great Expectations' result as an `ExpectationOutcome`."""
    error = exception_text(result)
    values = result.result or {}
    if error is not None:
        return ExpectationOutcome(planned=planned, success=False, error=error)
    percent = values.get("unexpected_percent")
    count = values.get("unexpected_count")
    return ExpectationOutcome(
        planned=planned,
        success=bool(result.success),
        unexpected_count=None if count is None else int(count),
        unexpected_percent=None if percent is None else float(percent),
        observed=values.get("observed_value"),
        samples=tuple((values.get("partial_unexpected_list") or ())[:samples]),
        rows=None if result.success else rows,
    )


def _observed(rule: StatisticRule, tally: Tally) -> Any:
    """The statistic, exact when the column's values are exact; None without values."""
    if rule.statistic is Statistic.ROWS:
        return tally.rows
    if rule.statistic is Statistic.PRESENT:
        return Fraction(tally.present, tally.rows) if tally.rows else Fraction(0)
    if not tally.rows:
        return None
    if rule.statistic in (Statistic.MIN, Statistic.MAX):
        extreme = tally.low if rule.statistic is Statistic.MIN else tally.high
        return Fraction(extreme) if isinstance(extreme, Decimal) else extreme
    if any(tally.infinite):
        return _with_infinities(rule.statistic, *tally.infinite)
    if rule.statistic is Statistic.STDEV:
        return _standard_deviation(tally)
    exact = tally.total if rule.statistic is Statistic.SUM else tally.total / tally.rows
    return exact if rule.data_type is not None and is_exact(rule.data_type) else _double(exact)


def _with_infinities(statistic: Statistic, below: int, above: int) -> float | None:
    if statistic is Statistic.STDEV or (below and above):
        return None
    return math.inf if above else -math.inf


def _standard_deviation(tally: Tally) -> float | None:
    """The sample standard deviation: the divisor is the number of values minus one."""
    if tally.rows < 2:
        return None
    return math.sqrt(_double((tally.squares - tally.total**2 / tally.rows) / (tally.rows - 1)))


def _double(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _shown(observed: Any, rule: StatisticRule) -> Any:
    """The statistic for a report: integers and decimals unchanged, other fractions as doubles."""
    if not isinstance(observed, Fraction):
        return observed
    if observed.denominator == 1 and not isinstance(rule.data_type, DecimalType):
        return int(observed)
    if isinstance(rule.data_type, DecimalType) and rule.statistic is not Statistic.MEAN:
        unit = 10**rule.data_type.scale
        return Decimal((int(observed * unit) < 0, _digits(observed * unit), -rule.data_type.scale))
    return _double(observed)


def _digits(number: Fraction) -> tuple[int, ...]:
    return tuple(map(int, str(abs(int(number)))))
