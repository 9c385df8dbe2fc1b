"""Subqueries are found by Spark's lexical rules, since only Spark parses the rest of the text."""

from __future__ import annotations

import pytest

from delta_core.expressions.subqueries import has_subquery


@pytest.mark.parametrize(
    "sql",
    [
        "id < (select max(x) from parquet.`/other`)",
        "exists(FROM parquet.`/other`)",
        "id in (\n TABLE t)",
        "id in (with a as (select 1) select * from a)",
        "id in (values (1))",
        "id in (VALUES 'a')",
        "( /* a */ -- b\n select 1)",
        "(/* /* */ ' */ select 1 /* ' */)",
        "r'\\' || (select 1) || ''",
        'R"\\" || (select 1) || ""',
        '"\\" = (select 1) or ""',
        "'it''s' || (select 1)",
        "-- ' \n (select 1) -- '",
        "x = (map a using 'cat' from t)",
    ],
)
def test_a_subquery_is_found(sql: str) -> None:
    assert has_subquery(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "id = '(select 1)'",
        'id = "(select 1)"',
        "(`select` = 1)",
        "r'(select 1)' = name",
        "a /* (select 1) */ = 1",
        "a = 1 -- (select 1)",
        "sum(values) + max(values.x)",
        "map_keys(map(1, 'using'))",
        "(selected or fromage)",
        "'\\'(select 1)'",
        "a = 'not closed (select 1)\\",
        "/* not closed (select 1)",
    ],
)
def test_other_expressions_are_none(sql: str) -> None:
    assert not has_subquery(sql)
