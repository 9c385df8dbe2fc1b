"""A suite as written to expectations that can run, and what is refused before a file is written."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from delta_core.errors import InvalidJobSpecError, QualitySuiteError
from delta_core.jobs.params.quality import QualityParams, Severity, parse_quality
from delta_core.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    StructField,
    StructType,
)
from spark_jobs.quality.row_tests import IsWithin
from spark_jobs.quality.rules import ConstantRule, InapplicableRule, RowRule
from spark_jobs.quality.suite import plan_suite
from spark_jobs.quality.type_names import is_name_of, is_type_name
from tests.support.quality import BETWEEN, IN_SET, NOT_NULL, expect, quality

SCHEMA = StructType(
    tuple(
        StructField(name=name, data_type=data_type)
        for name, data_type in {
            "Id": LONG,
            "day": DATE,
            "at": TIMESTAMP,
            "local": TIMESTAMP_NTZ,
            "price": DecimalType(10, 2),
            "tail": STRING,
        }.items()
    )
)


def parsed(*expectations: dict[str, Any], **settings: Any) -> QualityParams:
    found = parse_quality(quality(*expectations, **settings))
    assert found is not None
    return found


def refusal(*expectations: dict[str, Any]) -> str:
    with pytest.raises(QualitySuiteError) as caught:
        plan_suite(parsed(*expectations), SCHEMA)
    assert caught.value.fix
    return str(caught.value)


def test_no_suite_is_none() -> None:
    assert parse_quality(None) is None


def test_the_defaults_are_the_strict_ones() -> None:
    params = parsed(expect(NOT_NULL, column="Id"))
    assert params.on_failure == "fail"
    assert params.engine == "auto"
    assert params.expectations[0].severity is Severity.CRITICAL
    assert params.samples == 5


@pytest.mark.parametrize("settings", [{"samples": 21}, {"max_bad_fraction": 1.5}])
def test_numbers_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidJobSpecError, match=next(iter(settings))):
        parsed(expect(NOT_NULL, column="Id"), **settings)


def test_an_unknown_expectation_is_named() -> None:
    assert "expect_magic" in refusal(expect("expect_magic", column="Id"))


def test_wrong_arguments_are_named_with_the_expectation() -> None:
    message = refusal(expect(BETWEEN, column="Id", min_valu=1))
    assert f"{BETWEEN}(Id)" in message
    assert "min_valu" in message


def test_a_missing_column_is_named_with_those_there_are() -> None:
    message = refusal(expect(NOT_NULL, column="Idd"))
    assert "'Idd'" in message
    assert "Id, day" in message


def test_a_missing_argument_is_refused() -> None:
    assert IN_SET in refusal(expect(IN_SET, value_set=[1]))


def test_an_expectation_that_queries_a_database_is_refused() -> None:
    assert "database" in refusal(expect("unexpected_rows_expectation", unexpected_rows_query="select 1"))


def test_an_empty_suite_is_refused() -> None:
    assert "no expectations" in refusal()


@pytest.mark.parametrize(
    "expectation",
    [
        expect("expect_column_value_z_scores_to_be_less_than", column="Id", threshold=3, double_sided=True),
        expect(NOT_NULL, column="Id", mostl=1),
        expect("expect_column_values_to_match_json_schema", column="tail", json_schema={"type": "object"}),
        expect("expect_column_values_to_be_dateutil_parseable", column="tail"),
    ],
)
def test_without_a_package_the_fix_is_to_install_it(
    monkeypatch: pytest.MonkeyPatch, expectation: dict[str, Any]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "deltaward[quality]" in refusal(expectation)


def test_columns_are_found_without_case_and_spelled_as_the_table_does() -> None:
    planned = plan_suite(parsed(expect(NOT_NULL, column="ID")), SCHEMA)
    assert planned[0].spec.columns == ("Id",)
    assert planned[0].spec.name == f"{NOT_NULL}(Id)"
    assert planned[0].row_level


def test_a_column_that_may_not_exist_can_be_asked_for() -> None:
    planned = plan_suite(parsed(expect("expect_column_to_exist", column="nope")), SCHEMA)
    assert not planned[0].row_level


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("day", "2024-05-01", datetime.date(2024, 5, 1)),
        ("at", "2024-05-01T12:00:00+02:00", datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC)),
        ("at", "2024-05-01", datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)),
        ("local", "2024-05-01T12:00:00", datetime.datetime(2024, 5, 1, 12)),
    ],
)
def test_times_in_text_become_values_of_the_columns_type(
    column: str, text: str, value: datetime.date
) -> None:
    planned = plan_suite(parsed(expect(BETWEEN, column=column, min_value=text)), SCHEMA)
    rule = planned[0].rule
    assert isinstance(rule, RowRule)
    assert isinstance(rule.test, IsWithin)
    assert rule.test.bounds.low.as_py() == value


def test_a_text_that_is_no_time_is_refused() -> None:
    assert "yesterday" in refusal(expect(BETWEEN, column="at", min_value="yesterday"))


def test_what_does_not_fit_its_column_is_refused_or_as_a_warning_reported() -> None:
    text = expect(BETWEEN, column="tail", min_value=1)
    assert f"{BETWEEN}(tail)" in refusal(text)
    planned = plan_suite(parsed(text | {"severity": "warning"}), SCHEMA)
    rule = planned[0].rule
    assert isinstance(rule, InapplicableRule)
    assert "string" in rule.reason


@pytest.mark.parametrize(
    ("column", "name", "holds"),
    [
        ("Id", "int64", True),
        ("Id", "LongType", True),
        ("Id", "LongType()", True),
        ("Id", "bigint", True),
        ("Id", "int", True),
        ("Id", "int32", False),
        ("at", "TimestampType", True),
        ("price", "decimal(10, 2)", True),
        ("price", "decimal(9,2)", False),
        ("price", "DecimalType", True),
        ("tail", "str", True),
    ],
)
def test_types_go_by_the_names_of_both_engines(column: str, name: str, holds: bool) -> None:
    params = parsed(expect("expect_column_values_to_be_of_type", column=column, type_=name))
    planned = plan_suite(params, SCHEMA)
    assert planned[0].expectation is None
    rule = planned[0].rule
    assert isinstance(rule, ConstantRule)
    assert rule.success is holds


def test_a_list_of_types_and_a_type_that_nothing_has() -> None:
    kind = "expect_column_values_to_be_in_type_list"
    planned = plan_suite(parsed(expect(kind, column="Id", type_list=["str", "long"])), SCHEMA)
    assert planned[0].rule == ConstantRule(success=True, observed="long")
    assert "longg" in refusal(expect(kind, column="Id", type_list=["longg"]))


def test_names_of_types() -> None:
    assert is_type_name("DecimalType(10,2)")
    assert not is_type_name("decimal(10,2,3)")
    assert is_name_of(INTEGER, "int")
    assert not is_name_of(INTEGER, "bigint")
