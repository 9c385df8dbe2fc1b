"""Native rules take their arguments as Great Expectations does: the same names, defaults and refusals."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping
from typing import Any

import pytest

from delta_core.jobs.params.quality import parse_quality
from delta_core.schema.arrow import from_arrow
from spark_jobs.quality.batch_expectations import BATCH_EXPECTATIONS
from spark_jobs.quality.compile import TYPE_EXPECTATIONS
from spark_jobs.quality.expectations_library import (
    expectation_class,
    is_row_level,
    make_expectation,
    options_of,
)
from spark_jobs.quality.native_arguments import NATIVE_ARGUMENTS, REQUIRED, native_options
from spark_jobs.quality.row_expectations import ROW_EXPECTATIONS
from spark_jobs.quality.suite import plan_suite
from tests.support.quality import quality
from tests.support.verdicts import CASES, ROWS

# What every expectation of the library has, and no rule uses.
COMMON = {
    "id", "meta", "notes", "result_format", "description", "catch_exceptions", "rendered_content", "severity",
    "windows", "batch_id", "library_metadata",
}  # fmt: skip

USUAL: Mapping[str, list[Any]] = {
    "allow_relative_error": [True, False],
    "column": ["c"],
    "column_A": ["a"],
    "column_B": ["b"],
    "column_index": [0, 3],
    "column_list": [["a", "b"], ["a", "b", "c"]],
    "column_set": [["a"], ["a", "b"]],
    "condition_parser": ["pandas", "spark"],
    "escape": ["!"],
    "exact_match": [True, False],
    "ignore_row_if": [
        "both_values_are_missing", "either_value_is_missing", "neither",
        "all_values_are_missing", "any_value_is_missing", "never",
    ],
    "json_schema": [{"type": "object"}],
    "like_pattern": ["a%"],
    "like_pattern_list": [["a%"], ["a%", "_b"]],
    "match_on": ["any", "all"],
    "max_value": [7, 10],
    "min_value": [0, 7],
    "mostly": [0, 0.5, 1, 1.0],
    "or_equal": [True, False],
    "quantile_ranges": [{"quantiles": [0.1, 0.9], "value_ranges": [[0, 1.5], [None, 2]]}],
    "regex": ["^a"],
    "regex_list": [["^a"], ["^a", "b$"]],
    "row_condition": ["a > 0"],
    "strftime_format": ["%Y-%m-%d"],
    "strict_max": [True, False],
    "strict_min": [True, False],
    "sum_total": [3, 2.5, "2.5"],
    "ties_okay": [True, False],
    "type_": ["long"],
    "type_list": [["long"], ["long", "str"]],
    "value": [3],
    "value_pairs_set": [[["a", 1], [None, 2]], []],
    "value_set": [["a"], [1, 2.5, None]],
}  # fmt: skip

UNUSUAL: list[Any] = [
    None, True, False, -1, 0, 2, 1.5, float("nan"), float("inf"), 10**400, "", "1", "nan", "soon", "%Q",
    "neither", [], [1], ["a"], ["a", None], [[]], [["a", "b"]], [["a", "b", "c"]], {}, {"$PARAMETER": "p"},
    {"type": "object"},
    {"quantiles": [], "value_ranges": []}, {"quantiles": [1], "value_ranges": [[2, 1]]},
    {"quantiles": ["x"], "value_ranges": [[1, 2]]}, {"quantiles": [1], "value_ranges": [[1]]},
    datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC),
]  # fmt: skip


def test_every_rule_has_its_arguments_listed() -> None:
    assert set(NATIVE_ARGUMENTS) == {*ROW_EXPECTATIONS, *BATCH_EXPECTATIONS, *TYPE_EXPECTATIONS}


@pytest.mark.parametrize("name", NATIVE_ARGUMENTS)
def test_names_defaults_and_the_level_are_those_of_the_library(name: str) -> None:
    library = expectation_class(name)
    fields = {key: value for key, value in library.__fields__.items() if key not in COMMON}
    listed = {key: REQUIRED if field.required else field.default for key, field in fields.items()}
    assert listed == dict(NATIVE_ARGUMENTS[name])
    if name not in TYPE_EXPECTATIONS:
        assert is_row_level(library) is (name in ROW_EXPECTATIONS)


@pytest.mark.parametrize("name", NATIVE_ARGUMENTS)
def test_usual_arguments_are_read_as_the_library_reads_them(name: str) -> None:
    choose = random.Random(name)
    library = expectation_class(name)
    understood = 0
    for _ in range(20):
        kwargs = _some_arguments(name, choose)
        options = native_options(name, kwargs)
        if options is not None:
            understood += 1
            made = options_of(make_expectation(library, kwargs))
            for key in options.keys() - {"row_condition", "condition_parser", "quantile_ranges"}:
                read = made[key]
                if key in ("sum_total", "value", "mostly", "min_value", "max_value") and read is not None:
                    assert read == float(options[key])
                elif key == "value_pairs_set":
                    assert [list(pair) for pair in read] == options[key]
                else:
                    assert read == options[key]
    assert understood


@pytest.mark.parametrize("name", NATIVE_ARGUMENTS)
def test_what_is_taken_without_the_library_the_library_takes_too(name: str) -> None:
    choose = random.Random(name)
    library = expectation_class(name)
    accepted = 0
    for _ in range(100):
        kwargs = _some_arguments(name, choose)
        for key in choose.sample(sorted(kwargs), k=min(len(kwargs), choose.randint(1, 2))):
            if key not in ("row_condition", "condition_parser"):
                kwargs[key] = choose.choice(UNUSUAL)
        if native_options(name, kwargs) is not None:
            accepted += 1
            make_expectation(library, kwargs)
    assert accepted


@pytest.mark.parametrize("extra", [{"mostl": 1}, {"meta": {}}, {"result_format": "BASIC"}])
def test_further_arguments_are_left_to_the_library(extra: dict[str, Any]) -> None:
    assert native_options("expect_column_values_to_not_be_null", {"column": "c", **extra}) is None


def test_the_cases_of_the_page_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def asking(type_name: str) -> Any:
        asked.append(type_name)
        return expectation_class(type_name)

    monkeypatch.setattr("spark_jobs.quality.suite.expectation_class", asking)
    params = parse_quality(quality(*[case.expectation for case in CASES]))
    assert params is not None
    plan_suite(params, from_arrow(ROWS.schema))
    assert set(asked) & set(NATIVE_ARGUMENTS) == set()


def _some_arguments(name: str, choose: random.Random) -> dict[str, Any]:
    kwargs = {}
    for key, default in NATIVE_ARGUMENTS[name].items():
        if default is REQUIRED or choose.random() < 0.6:
            kwargs[key] = choose.choice(USUAL[key])
    if "row_condition" not in kwargs:
        kwargs.pop("condition_parser", None)
    return kwargs
