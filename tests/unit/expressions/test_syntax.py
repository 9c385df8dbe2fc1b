"""Syntax of Spark SQL that stands for something else: escapes, deep names, other names of functions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Column
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse, parse_predicate, parse_value
from delta_core.schema.arrow import from_arrow

STRINGS = ["abc", "a%c", "a!c", r"a\c", None]
DATA = pa.table(
    {
        "s": STRINGS,
        "f": [True, False, True, False, None],
        "deep": [{"b": {"c": {"d": {"e": n}}}} for n in range(5)],
    }
)
SCHEMA = from_arrow(DATA.schema)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s like 'a%c'", {"abc", "a%c", "a!c", r"a\c"}),
        ("s like 'a!%c' escape '!'", {"a%c"}),
        ("s not like 'a!%c' escape '!'", {"abc", "a!c", r"a\c"}),
        ("s like 'a!!c' escape '!'", {"a!c"}),
        # Any other mark takes its meaning from the backslash.
        (r"s like 'a\\_' escape '!'", {r"a\c"}),
        (r"s like 'a\\c' escape '!'", {r"a\c"}),
        (r"s like 'a\\%c' escape '\\'", {"a%c"}),
        (r"s not like 'a\\%c' escape '\\'", {"abc", "a!c", r"a\c"}),
        ("s like all ('a%', '%c')", {"abc", "a%c", "a!c", r"a\c"}),
    ],
)
def test_patterns_with_an_escape(text, expected):
    found = evaluate(parse_predicate(text, SCHEMA), DATA).to_pylist()
    assert {value for value, keep in zip(STRINGS, found, strict=True) if keep} == expected
    assert found[-1] is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f is unknown", [False, False, False, False, True]),
        ("f is not unknown", [True, True, True, True, False]),
        ("deep.b.c.d.e >= 3", [False, False, False, True, True]),
        ("DEEP.B.C.`d`.E = 0", [True, False, False, False, False]),
        ("substring(s from 2 for 1) = 'b'", [True, False, False, False, None]),
        ("char_length(s) = len(s)", [True, True, True, True, None]),
        ("ucase(s) = 'ABC' and lcase(s) = 'abc'", [True, False, False, False, None]),
    ],
)
def test_meaning(text, expected):
    assert evaluate(parse_predicate(text, SCHEMA), DATA).to_pylist() == expected


def test_a_name_of_many_parts_is_one_column():
    assert parse("deep.b.c.d.e") == Column(("deep", "b", "c", "d", "e"))


def test_binary_as_a_function_casts():
    found = evaluate(parse_value("binary(s)", SCHEMA), DATA).to_pylist()
    assert found == [None if text is None else text.encode() for text in STRINGS]


@pytest.mark.parametrize(
    "text",
    [
        "s like 'x' escape '!!'",
        "upper(s).x = 'a'",
        "deep.b.c.d.* = 1",
        "trim(both 'x' from s) = 'a'",
        "s is json",
        "s like any ('a%', '%c') escape '!'",
    ],
)
def test_refused_with_what_is_understood(text):
    with pytest.raises(ExpressionError) as caught:
        parse_predicate(text, SCHEMA)
    assert "not allowed in an expression" in caught.value.problem
    assert caught.value.fix == "Rewrite the condition with the syntax that docs/predicates.md lists."


NUMBER = from_arrow(pa.schema([("v", pa.int64()), ("s", pa.string()), ("d", pa.date32())]))


@pytest.mark.parametrize("terms", [150, 350, 480, 3000])
@pytest.mark.parametrize("form", ["v{} = 1", "v{} > v"])
def test_a_long_sum_is_worked_out_or_refused(terms, form):
    text = form.format(" + 1" * terms)
    if terms < 200:
        assert evaluate(parse_predicate(text, NUMBER), pa.table({"v": [1 - terms, 5]})).to_pylist()[0]
    else:
        with pytest.raises(ExpressionError, match=r"nested too deeply|too long"):
            parse_predicate(text, NUMBER)


def test_a_long_chain_of_comparisons_is_refused():
    with pytest.raises(ExpressionError):
        parse_predicate("v = 1" + " = true" * 500, NUMBER)


@pytest.mark.parametrize("text", ["s = '\ud800'", "s LIKE '\udfff%'", "`\ud800` = 1"])
def test_half_of_a_character_is_refused(text):
    with pytest.raises(ExpressionError):
        parse_predicate(text, NUMBER)


@pytest.mark.parametrize("count", ["~3", "NOT 3", "(1 + 2)", "v", "'x'", "3.5"])
def test_an_interval_is_one_whole_number(count):
    with pytest.raises(ExpressionError):
        parse_predicate(f"d = DATE '2020-01-05' + INTERVAL {count} DAYS", NUMBER)


def test_a_pattern_that_is_too_large_names_the_pattern():
    predicate = parse_predicate("s LIKE '" + "_%a" * 60_000 + "'", NUMBER)
    with pytest.raises(ExpressionError, match="pattern of LIKE is too large"):
        evaluate(predicate, pa.table({"s": ["x"]}))
