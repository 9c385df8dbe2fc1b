from __future__ import annotations

import pytest

from delta_core.errors import InvalidJobSpecError
from spark_jobs.loading.order import SortItem, sort_items


def item(expression: str, *, descending: bool = False, nulls_first: bool = False) -> SortItem:
    return SortItem(expression=expression, descending=descending, nulls_first=nulls_first)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("seq", [item("seq")]),
        ("desc", [item("desc")]),
        ("seq DESC", [item("seq", descending=True)]),
        ("seq Asc", [item("seq")]),
        ("seq DESC NULLS LAST", [item("seq", descending=True)]),
        ("seq nulls  first", [item("seq", nulls_first=True)]),
        ("seq desc\n nulls\tfirst ", [item("seq", descending=True, nulls_first=True)]),
        ("f(a, b)DESC, `c, d` asc", [item("f(a, b)", descending=True), item("`c, d`")]),
        ("xs[f(0, 1)] DESC", [item("xs[f(0, 1)]", descending=True)]),
        (r"if(a = 'it\', (', b, c) DESC", [item(r"if(a = 'it\', (', b, c)", descending=True)]),
        ("`a desc`", [item("`a desc`")]),
        ("'x DESC'", [item("'x DESC'")]),
        ("my_desc", [item("my_desc")]),
        ("my_nulls first", [item("my_nulls first")]),
    ],
)
def test_items_are_an_expression_a_direction_and_where_nulls_go(text: str, items: list[SortItem]) -> None:
    assert sort_items([text]) == items


def test_several_texts_are_one_order() -> None:
    assert [one.expression for one in sort_items(["a DESC", "b, c"])] == ["a", "b", "c"]


@pytest.mark.parametrize("text", ["", " ", "a,", ", b", "a DESC, , b"])
def test_an_item_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidJobSpecError, match="has no expression"):
        sort_items([text])
