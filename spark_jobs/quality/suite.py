"""Preparation of a suite's expectations. Invalid expectations are refused before a file is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from delta_core.errors import QualitySuiteError
from delta_core.jobs.params.quality import ExpectationSpec, QualityParams, Severity
from delta_core.schema.types import StructType
from spark_jobs.quality.compile import compile_rule, require_no_order
from spark_jobs.quality.expectations_library import (
    expectation_class,
    is_row_level,
    make_expectation,
    options_of,
)
from spark_jobs.quality.native_arguments import NATIVE_ARGUMENTS, native_options
from spark_jobs.quality.row_expectations import ROW_EXPECTATIONS
from spark_jobs.quality.rules import InapplicableRule, Rule
from spark_jobs.quality.suite_values import InapplicableError, is_moment, moment

if TYPE_CHECKING:
    from spark_jobs.quality.outcome import ExpectationOutcome

_VALUE_KEYS = ("min_value", "max_value", "value_set")
_EXISTENCE = "expect_column_to_exist"
_NOT_COMPILED: Final = InapplicableRule(reason="The expectation was not compiled.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedExpectation:
    """One prepared expectation.

    Attributes:
        row_level: whether the expectation is evaluated per row.
        rule: the rule that evaluates the expectation.
        expectation: the object of Great Expectations; None for an expectation that it does not evaluate.
    """

    spec: ExpectationSpec
    row_level: bool
    rule: Rule = _NOT_COMPILED
    expectation: Any = None


def plan_suite(params: QualityParams, schema: StructType) -> tuple[PlannedExpectation, ...]:
    """Prepare the suite's expectations for rows of this schema.

    Raises:
        QualitySuiteError: an expectation cannot be evaluated. The error names the first one, the cause and
            the fix.
    """
    if not params.expectations:
        raise QualitySuiteError(
            f"The suite {params.suite!r} has no expectations.",
            fix="Add an expectation, or leave out quality.",
        )
    return tuple(_planned(spec, schema) for spec in params.expectations)


def require_evaluated(outcomes: Sequence[ExpectationOutcome], *, shows_values: bool) -> None:
    """Check that every critical expectation was evaluated.

    An expectation that could not be evaluated is an error of the suite, not of the data, so no policy accepts
    it.

    Args:
        outcomes: the outcomes of all expectations.
        shows_values: whether the error may contain Great Expectations' message, which may quote a value.

    Raises:
        QualitySuiteError: an expectation was not evaluated. The error has its name and the reason.
    """
    for outcome in outcomes:
        if outcome.blocks and outcome.error is not None:
            raise QualitySuiteError(
                f"The expectation {outcome.name} could not be evaluated.",
                cause=outcome.error[:500] if shows_values else "",
                fix="Correct its kwargs, or set its severity to 'warning', so that it is only reported.",
            )


def _planned(spec: ExpectationSpec, schema: StructType) -> PlannedExpectation:
    require_no_order(spec)
    spec = replace(spec, kwargs=_with_canonical_columns(spec, schema))
    kwargs = _with_typed_values(spec, schema)
    if spec.type not in NATIVE_ARGUMENTS:
        library_class = expectation_class(spec.type)
        made = _made(library_class, spec, kwargs)
        rule = _rule(spec, kwargs, schema)
        return PlannedExpectation(
            spec=spec, expectation=made, row_level=is_row_level(library_class), rule=rule
        )
    options = native_options(spec.type, kwargs)
    if options is None:
        options = options_of(_made(expectation_class(spec.type), spec, kwargs))
    rule = _rule(spec, options, schema)
    return PlannedExpectation(spec=spec, row_level=spec.type in ROW_EXPECTATIONS, rule=rule)


def _made(library_class: Any, spec: ExpectationSpec, kwargs: Mapping[str, Any]) -> Any:
    try:
        return make_expectation(library_class, kwargs)
    except ValueError as error:
        raise QualitySuiteError(
            f"The expectation {spec.name} has invalid keyword arguments.",
            cause=str(error)[:500],
            fix=f"Correct its kwargs {sorted(spec.kwargs)}; see the documentation of {spec.type}.",
        ) from error


def _rule(spec: ExpectationSpec, options: Mapping[str, Any], schema: StructType) -> Rule:
    try:
        return compile_rule(spec, options, schema)
    except InapplicableError as error:
        if spec.severity is Severity.WARNING:
            return InapplicableRule(reason=str(error))
        raise QualitySuiteError(
            f"The expectation {spec.name} does not fit the rows.",
            cause=str(error)[:500],
            fix="Correct its kwargs, or set its severity to 'warning', so that it is only reported.",
        ) from error


def _with_canonical_columns(spec: ExpectationSpec, schema: StructType) -> dict[str, Any]:
    """The keyword arguments with the table's column names."""
    kwargs = dict(spec.kwargs)
    if spec.type == _EXISTENCE:
        return kwargs
    names: dict[str, str] = {}
    for name in spec.columns:
        field = schema.find(name)
        if field is None:
            raise QualitySuiteError(
                f"The expectation {spec.name} names the column {name!r}, which the rows do not have.",
                cause=f"The rows have the columns {', '.join(schema.names)}.",
                fix="Correct the column's name in the suite, or load the column.",
            )
        names[name] = field.name
    for key in ("column", "column_A", "column_B"):
        if isinstance(kwargs.get(key), str):
            kwargs[key] = names[kwargs[key]]
    if isinstance(kwargs.get("column_list"), (list, tuple)):
        kwargs["column_list"] = [names.get(name, name) for name in kwargs["column_list"]]
    return kwargs


def _with_typed_values(spec: ExpectationSpec, schema: StructType) -> dict[str, Any]:
    """The keyword arguments with dates and times parsed from the strings of a JSON suite."""
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
    except InapplicableError as error:
        raise QualitySuiteError(
            f"The expectation {spec.name} does not fit the rows.",
            cause=str(error)[:500],
            fix="Write a timestamp such as '2024-05-01T12:00:00+00:00' or a date such as '2024-05-01'.",
        ) from error
    return kwargs
