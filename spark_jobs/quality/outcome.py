"""What an engine found out about a suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spark_jobs.quality.expectations_library import exception_text
from spark_jobs.quality.params import Severity
from spark_jobs.quality.suite import TYPE_EXPECTATIONS, PlannedExpectation, type_answer

if TYPE_CHECKING:
    from delta_core.schema.types import StructType
    from spark_jobs.quality.staged import Positions


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationOutcome:
    """One expectation's result.

    Attributes:
        unexpected_count, unexpected_percent: of a row-level expectation; the percentage is of the values
            that are not missing.
        observed: what an expectation about the whole batch has found.
        samples: some unexpected values.
        rows: positions of the rows that do not meet it, in the order of the staged files; None when the
            expectation does not tell, or tells of more rows than are collected.
        error: why it could not be evaluated.
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
        """For people: the type with its columns."""
        return self.planned.spec.name

    @property
    def blocks(self) -> bool:
        """Whether it failed and may stop the batch."""
        return not self.success and self.planned.spec.severity is Severity.CRITICAL


def outcome_of(
    planned: PlannedExpectation, result: Any, *, samples: int, rows: Positions | None
) -> ExpectationOutcome:
    """The library's result as one of ours."""
    error = exception_text(result)
    found = result.result or {}
    if error is not None:
        return ExpectationOutcome(planned=planned, success=False, error=error)
    percent = found.get("unexpected_percent")
    count = found.get("unexpected_count")
    return ExpectationOutcome(
        planned=planned,
        success=bool(result.success),
        unexpected_count=None if count is None else int(count),
        unexpected_percent=None if percent is None else float(percent),
        observed=found.get("observed_value"),
        samples=tuple((found.get("partial_unexpected_list") or ())[:samples]),
        rows=None if result.success else rows,
    )


def schema_outcomes(
    planned: Sequence[PlannedExpectation], schema: StructType
) -> dict[int, ExpectationOutcome]:
    """The outcomes that the schema alone decides, by position in the suite."""
    found = {}
    for index, item in enumerate(planned):
        if item.spec.type in TYPE_EXPECTATIONS:
            success, observed = type_answer(item.spec, schema)
            found[index] = ExpectationOutcome(planned=item, success=success, observed=observed)
    return found
