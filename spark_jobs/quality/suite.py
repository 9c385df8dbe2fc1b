"""From a suite as written to expectations that can run; what cannot run is refused before any file is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from delta_core.errors import QualitySuiteError
from delta_core.schema.types import StructType
from spark_jobs.quality.compile import TYPE_EXPECTATIONS, compile_rule
from spark_jobs.quality.expectations_library import (
    expectation_class,
    is_row_level,
    make_expectation,
    require_library,
)
from spark_jobs.quality.params import ExpectationSpec, QualityParams, Severity
from spark_jobs.quality.rules import MisfitRule, Rule
from spark_jobs.quality.suite_values import MisfitError, is_moment, moment

if TYPE_CHECKING:
    from spark_jobs.quality.outcome import ExpectationOutcome

_VALUE_KEYS = ("min_value", "max_value", "value_set")
_EXISTENCE = "expect_column_to_exist"
_NOT_COMPILED: Final = MisfitRule(reason="it was not compiled")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedExpectation:
    """One expectation, ready.

    Attributes:
        expectation: the library's object; None for one about types.
        row_level: whether it tells which rows do not meet it.
        rule: what judges it.
    """

    spec: ExpectationSpec
    expectation: Any
    row_level: bool
    rule: Rule = _NOT_COMPILED


def plan_suite(params: QualityParams, schema: StructType) -> tuple[PlannedExpectation, ...]:
    """The suite's expectations against a table of this schema.

    Raises:
        QualitySuiteError: names the first expectation that cannot be checked, why, and what to change.
    """
    require_library()
    if not params.expectations:
        raise QualitySuiteError(
            f"The suite {params.suite!r} has no expectations.",
            fix="Give it at least one, or leave quality out",
        )
    return tuple(_planned(spec, schema) for spec in params.expectations)


def require_evaluated(outcomes: Sequence[ExpectationOutcome], *, shows_values: bool) -> None:
    """Check that every blocking expectation has an answer.

    One that could not be evaluated is a defect of the suite, not of the data: no policy lets it pass.

    Args:
        outcomes: of all expectations.
        shows_values: whether the error may hold the library's text, which may quote a value.

    Raises:
        QualitySuiteError: names it, with the library's reason.
    """
    for outcome in outcomes:
        if outcome.blocks and outcome.error is not None:
            raise QualitySuiteError(
                f"The expectation {outcome.name} could not be evaluated.",
                cause=outcome.error[:500] if shows_values else "",
                fix="Correct its kwargs, or give it severity 'warning' to have it reported only",
            )


def _planned(spec: ExpectationSpec, schema: StructType) -> PlannedExpectation:
    expectation = expectation_class(spec.type)
    spec = replace(spec, kwargs=_with_canonical_columns(spec, schema))
    kwargs = _with_typed_values(spec, schema)
    try:
        made = make_expectation(expectation, kwargs)
    except ValueError as error:
        raise QualitySuiteError(
            f"The expectation {spec.name} has wrong keyword arguments.",
            cause=str(error)[:500],
            fix=f"Its kwargs are {sorted(spec.kwargs)}; see the documentation of {spec.type}",
        ) from error
    rule = _rule(spec, made, schema)
    if spec.type in TYPE_EXPECTATIONS:
        return PlannedExpectation(spec=spec, expectation=None, row_level=False, rule=rule)
    return PlannedExpectation(spec=spec, expectation=made, row_level=is_row_level(expectation), rule=rule)


def _rule(spec: ExpectationSpec, made: Any, schema: StructType) -> Rule:
    try:
        return compile_rule(spec, made, schema)
    except MisfitError as error:
        if spec.severity is Severity.WARNING:
            return MisfitRule(reason=str(error))
        raise QualitySuiteError(
            f"The expectation {spec.name} does not fit the rows.",
            cause=str(error)[:500],
            fix="Correct its kwargs, or give it severity 'warning' to have it reported only",
        ) from error


def _with_canonical_columns(spec: ExpectationSpec, schema: StructType) -> dict[str, Any]:
    """The keyword arguments with the columns in the table's spelling."""
    kwargs = dict(spec.kwargs)
    if spec.type == _EXISTENCE:
        return kwargs
    names: dict[str, str] = {}
    for name in spec.columns:
        field = schema.find(name)
        if field is None:
            raise QualitySuiteError(
                f"The expectation {spec.name} is about a column {name!r} that the rows do not have.",
                cause=f"Their columns are {', '.join(schema.names)}",
                fix="Correct the column's name in the suite, or load the column",
            )
        names[name] = field.name
    for key in ("column", "column_A", "column_B"):
        if isinstance(kwargs.get(key), str):
            kwargs[key] = names[kwargs[key]]
    if isinstance(kwargs.get("column_list"), (list, tuple)):
        kwargs["column_list"] = [names.get(name, name) for name in kwargs["column_list"]]
    return kwargs


def _with_typed_values(spec: ExpectationSpec, schema: StructType) -> dict[str, Any]:
    """The keyword arguments with dates and times as such: a suite in JSON has them as text."""
    kwargs = dict(spec.kwargs)
    field = schema.find(str(kwargs.get("column")))
    if field is None or not is_moment(field.data_type):
        return kwargs
    try:
        for key in _VALUE_KEYS:
            value = kwargs.get(key)
            if isinstance(value, str):
                kwargs[key] = moment(value, field.data_type)
            elif isinstance(value, list):
                kwargs[key] = [
                    moment(item, field.data_type) if isinstance(item, str) else item for item in value
                ]
    except MisfitError as error:
        raise QualitySuiteError(
            f"The expectation {spec.name} does not fit the rows.",
            cause=str(error)[:500],
            fix="Write times like 2024-05-01T12:00:00+00:00 and dates like 2024-05-01, in quotes",
        ) from error
    return kwargs
