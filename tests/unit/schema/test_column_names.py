"""Lists of columns in properties."""

from __future__ import annotations

import pytest

from delta_core.schema.column_names import (
    STATS_COLUMNS_KEY,
    drop_stats_columns,
    parse_names,
    rename_stats_column,
    render_names,
)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a", [("a",)]),
        (" a , b.c ", [("a",), ("b", "c")]),
        ("`x.y`.z,`a``b`", [("x.y", "z"), ("a`b",)]),
        ("with space", [("with space",)]),
        ("", []),
        ("  ", []),
    ],
)
def test_lists(text, paths):
    assert parse_names(text) == paths
    assert parse_names(render_names(paths)) == paths


@pytest.mark.parametrize("text", [",", "a,,b", "a.", ".a", "`a", "`a`b", "a,"])
def test_no_lists(text):
    assert parse_names(text) is None


def test_long_texts_are_quick():
    assert parse_names(" " * 200_000 + ",") is None
    assert parse_names("`" * 100_001) is None


def configuration(text: str) -> dict[str, str]:
    return {"k": "v", STATS_COLUMNS_KEY: text}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a,S.x,b", "a,S.new,b"),
        ("s.X.deep", "s.new.deep"),
        ("s,x", "s,x"),
        ("`not, a list", "`not, a list"),
    ],
)
def test_renamed(before, after):
    assert rename_stats_column(configuration(before), ("s", "x"), "new") == configuration(
        after.replace("S.new", "s.new")
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [("a,S.x,b", "a,b"), ("s.x.deep,s.y", "s.y"), ("s", "s"), ("s.x", ""), (" a , b ", " a , b ")],
)
def test_dropped(before, after):
    assert drop_stats_columns(configuration(before), [("s", "x")]) == configuration(after)


def test_without_the_property():
    assert rename_stats_column({}, ("a",), "b") == {}
    assert drop_stats_columns({}, [("a",)]) == {}
