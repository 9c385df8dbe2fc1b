"""The tables of a query, their places, versions and the conditions by which files are left out."""

from __future__ import annotations

import pytest

from spark_jobs.sql_statements import statements as kinds
from spark_jobs.sql_statements.parsing.cursor import Bindings
from spark_jobs.sql_statements.parsing.parse import parse_statement


def tables_of(text: str, **parameters: object) -> list[kinds.FoundTable]:
    statement = parse_statement(text, Bindings(named=parameters))
    assert isinstance(statement, kinds.SelectStatement)
    for found in statement.query.tables:
        place = text[found.table.start : found.table.end]
        assert place.lower().startswith((found.table.parts[0].lower(), "`", "table_changes"))
    return list(statement.query.tables)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM a, b.c AS d JOIN e USING (x)", ["a", "b.c", "e"]),
        ("WITH a AS (SELECT * FROM b) SELECT * FROM a JOIN c", ["b", "c"]),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", ["a"]),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM A, B", []),
        ("WITH a AS (SELECT 1) SELECT * FROM x.a", ["x.a"]),
        ("SELECT * FROM (SELECT 1 FROM a) WHERE x > (SELECT 1 FROM b WHERE y = (SELECT 1 FROM c))", [*"abc"]),
        ("SELECT (SELECT max(x) FROM a), 'FROM b' AS `from c` -- FROM d\nFROM e", ["a", "e"]),
        ("SELECT * FROM a UNION ALL SELECT * FROM b EXCEPT SELECT * FROM a", ["a", "b", "a"]),
        ("SELECT explode(x) FROM a LATERAL VIEW explode(y) t AS z", ["a"]),
        ("SELECT extract(day FROM d), x IS DISTINCT FROM y FROM a", ["a"]),
        ("SELECT * FROM range(10), VALUES (1) AS v(a)", []),
        ("TABLE a", ["a"]),
        ("FROM a SELECT b", ["a"]),
        ("SELECT * FROM a PIVOT (sum(x) FOR y IN ('p', 'q'))", ["a"]),
        ("SELECT version AS of FROM a", ["a"]),
        ("SELECT a.timestamp as of, version as of from a", ["a"]),
        ("FROM a |> WHERE x > 1 |> SELECT y", ["a"]),
    ],
)  # fmt: skip
def test_the_tables_of_a_query_are_found(text: str, names: list[str]) -> None:
    assert sorted(found.table.name for found in tables_of(text)) == sorted(names)


@pytest.mark.parametrize(
    ("text", "version", "timestamp", "aliased"),
    [
        ("SELECT * FROM t VERSION AS OF 3 WHERE a", 3, None, False),
        ("SELECT * FROM t FOR VERSION AS OF '4' x", 4, None, True),
        ("SELECT * FROM t@v12 AS x JOIN u ON true", 12, None, True),
        ("SELECT * FROM t@20130131080000123", None, "'2013-01-31 08:00:00.123'", False),
        ("SELECT * FROM t TIMESTAMP AS OF '2013-01-31' GROUP BY a", None, "'2013-01-31'", False),
        ("SELECT * FROM t TIMESTAMP AS OF now() - INTERVAL 1 DAY x", None, "now() - INTERVAL 1 DAY", True),
        ("SELECT * FROM t TIMESTAMP AS OF CAST('2013' AS DATE)", None, "CAST('2013' AS DATE)", False),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF DATE '2013-01-31' x", None, "DATE '2013-01-31'", True),
        ("SELECT * FROM t VERSION AS OF :v x", 9, None, True),
    ],
)  # fmt: skip
def test_time_travel_belongs_to_its_table(
    text: str, version: int | None, timestamp: str | None, aliased: bool
) -> None:
    found = tables_of(text, v=9)[0]
    assert found.table.version == version
    assert (None if found.table.timestamp is None else found.table.timestamp.sql) == timestamp
    assert (found.alias_at is None) == aliased


def test_changes_have_a_table_and_bounds() -> None:
    (found,) = tables_of("SELECT * FROM table_changes('`d b`.t', :a, '2020-01-01') c", a=3)
    assert found.table.parts == ("d b", "t")
    assert found.changes == kinds.ChangeRange(first=3, last="2020-01-01")
    assert found.alias_at is None


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("SELECT * FROM t WHERE a = 1 AND (b > 2 AND c IN (1, 2))", {"t": {"a = 1", "b > 2", "c IN (1, 2)"}}),
        ("SELECT * FROM t x WHERE x.a = :p", {"t": {"a = 7"}}),
        ("SELECT * FROM t WHERE a = 1 OR b = 2", {"t": {"a = 1 OR b = 2"}}),
        ("SELECT * FROM t JOIN u WHERE t.a = 1 AND u.b = 2 AND c = 3", {"t": {"a = 1"}, "u": {"b = 2"}}),
        ("SELECT * FROM t LEFT JOIN u USING (x) WHERE t.a = 1 AND u.b IS NULL", {"t": {"a = 1"}, "u": set()}),
        ("SELECT * FROM t RIGHT JOIN u ON t.x = u.x WHERE t.a = 1 AND u.b = 2", {"t": set(), "u": set()}),
        ("SELECT * FROM t FULL JOIN u ON t.x = u.x WHERE t.a = 1", {"t": set(), "u": set()}),
        ("SELECT * FROM t ANTI JOIN u ON t.x = u.x WHERE a = 1 AND t.b = 1", {"t": {"b = 1"}, "u": set()}),
        ("SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE u.c = 1)", {"t": set(), "u": {"c = 1"}}),
        ("SELECT * FROM t TABLESAMPLE (1 ROWS) WHERE a = 1", {"t": set()}),
        ("SELECT * FROM t AS x(b, a) WHERE a = 1 AND x.b = 2", {"t": set()}),
        ("SELECT * FROM t PIVOT (sum(a) FOR b IN (1 AS a)) WHERE a = 1", {"t": set()}),
        ("SELECT * FROM t UNPIVOT (a FOR k IN (b, c)) WHERE a = 1", {"t": set()}),
        ("FROM t |> ORDER BY b |> LIMIT 5 |> WHERE a = 1", {"t": set()}),
        ("SELECT * FROM t WHERE a = 'it''s' AND b IN (concat('x', 'y'), 'z' 'z')", {"t": set()}),
        ("SELECT * FROM (SELECT * FROM t) s WHERE a = 1", {"t": set()}),
        ("SELECT * FROM t LATERAL VIEW explode(x) e AS a WHERE a = 1", {"t": set()}),
        ("SELECT a FROM t GROUP BY a HAVING a = 1", {"t": set()}),
    ],
)  # fmt: skip
def test_conditions_hold_for_every_row_of_the_result(text: str, conditions: dict[str, set[str]]) -> None:
    assert {found.table.name: set(found.where) for found in tables_of(text, p=7)} == conditions


def test_only_parameters_of_the_query_are_passed_to_it() -> None:
    statement = parse_statement(
        "INSERT INTO t REPLACE WHERE d = ? SELECT ?, ? FROM s VERSION AS OF ?",
        Bindings(positional=["x", 1, 2, 3]),
    )
    assert isinstance(statement, kinds.Insert)
    assert statement.query.positional == (1, 2)
    assert statement.replace_where is not None
    assert statement.replace_where.sql == "d =  'x'"
    assert statement.query.tables[0].table.version == 3
