"""Conditions in the history have delta-spark's form; values that are not SQL stay as they are."""

from __future__ import annotations

import json

import pytest

from spark_jobs.delta_table.recorded_predicates import as_recorded


@pytest.mark.parametrize(
    ("sql", "recorded"),
    [
        ("(`key` = 'a')", ["('key = a)"]),
        ("(`d` >= DATE '2024-01-01' AND `k` <> 3)", ["('d >= 2024-01-01)", "NOT ('k = 3)"]),
        ("(`a` = 1 OR `b` IS NULL)", ["(('a = 1) OR isnull('b))"]),
        ("(`a`.`b` IS NOT NULL)", ["isnotnull('a.b)"]),
        ("(`k` IN (1, 2))", ["'k IN (1,2)"]),
        ("(NOT (`k` <=> 'x'))", ["NOT ('k <=> x)"]),
    ],
)
def test_a_condition_has_the_form_of_delta_spark(sql: str, recorded: list[str]) -> None:
    assert json.loads(as_recorded([sql])) == recorded
    assert json.loads(as_recorded(json.dumps([sql]))) == recorded


@pytest.mark.parametrize("value", ["[]", [], None, "no json", '["(\'key = a)"]', {"a": 1}, [1]])
def test_other_values_stay(value: object) -> None:
    assert as_recorded(value) == value
