"""Text that is refused: the message says what it is, and what to write in its place."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.functions import FUNCTIONS
from delta_core.expressions.parse import parse_predicate
from delta_core.schema.arrow import from_arrow
from tests.support.repository import ROOT

SCHEMA = from_arrow(
    pa.schema([("x", pa.int64()), ("y", pa.float64()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC"))])
)


def refusal(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        parse_predicate(text, SCHEMA)
    return caught.value


@pytest.mark.parametrize(
    "text", ["x IN (SELECT 1)", "x = (SELECT 1)", "EXISTS (SELECT 1)", "NOT x IN (SELECT 1)"]
)
def test_a_subquery_is_called_one(text: str) -> None:
    error = refusal(text)
    assert "is a subquery" in error.problem
    assert "x IN (1, 2, 3)" in error.fix


@pytest.mark.parametrize(
    "text",
    [
        "t > now()",
        "t < now() - INTERVAL 1 DAY",
        "t = current_timestamp()",
        "t = CURRENT_TIMESTAMP",
        "d = current_date()",
        "d >= date_sub(current_date(), 7)",
        "d > curdate()",
        "t > localtimestamp()",
    ],
)
def test_the_present_time_is_called_that(text: str) -> None:
    error = refusal(text)
    assert "is the present time" in error.problem
    assert "TIMESTAMP '2026-01-31 12:00:00'" in error.fix


@pytest.mark.parametrize("text", ["rand() > 0.5", "x = monotonically_increasing_id()", "uuid() = 'a'"])
def test_what_does_not_depend_on_the_row_is_refused_for_that(text: str) -> None:
    assert "does not depend on the row alone" in refusal(text).cause


@pytest.mark.parametrize("text", ["x RLIKE 'a'", "x = ARRAY(1)[0]", "f(x)"])
def test_an_unknown_construct_names_the_page(text: str) -> None:
    assert "docs/predicates.md" in refusal(text).fix


@pytest.mark.parametrize("text", ["", "  ", "\n", "-- nothing"])
def test_an_empty_text_has_a_message_with_a_subject(text: str) -> None:
    assert refusal(text).problem == "The condition is empty."


@pytest.mark.parametrize("text", ["x = ?", "x = :p"])
def test_a_parameter_is_called_one(text: str) -> None:
    assert "is a parameter" in refusal(text).problem


def test_the_page_lists_every_function() -> None:
    page = (ROOT / "docs" / "predicates.md").read_text()
    assert [name for name in FUNCTIONS if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    "text",
    [
        "abs(x) > 1",
        "isnan(y)",
        "quarter(d) = 4",
        "dayofweek(d) = 1",
        "weekday(d) = 6",
        "-x > 1",
        "'a' || 'b' = 'ab'",
    ],
)
def test_what_the_page_lists_is_evaluated(text: str) -> None:
    sunday = pa.record_batch({"x": [-2], "y": [float("nan")], "d": [date(2026, 11, 22)], "t": [None]})
    assert evaluate(parse_predicate(text, SCHEMA), sunday).to_pylist() == [True]
