from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings

from delta_core.expressions.evaluate import evaluate, filter_rows
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve_predicate
from delta_core.schema.arrow import from_arrow
from tests.support.reference_predicates import reference
from tests.unit.expressions.predicates import PREDICATES, SCHEMA, duckdb_sql, rows, table_of

DELTA_SCHEMA = from_arrow(SCHEMA)


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'")
        yield opened


@given(rows(), PREDICATES)
@settings(max_examples=100)
def test_same_as_plain_python(data, predicate):
    table = table_of(data)
    resolved = resolve_predicate(predicate, DELTA_SCHEMA)
    assert evaluate(resolved, table).to_pylist() == [reference(predicate, row) for row in data]


@given(rows(min_size=1), PREDICATES)
@settings(max_examples=75)
def test_same_as_duckdb(connection, data, predicate):
    table = table_of(data)
    resolved = resolve_predicate(predicate, DELTA_SCHEMA)
    connection.register("rows_of_test", table)
    found = connection.execute(
        f"SELECT CAST({duckdb_sql(predicate)} AS BOOLEAN) FROM rows_of_test"
    ).fetchall()
    assert evaluate(resolved, table).to_pylist() == [row[0] for row in found]


@given(rows(), PREDICATES)
@settings(max_examples=75)
def test_rendered_text_means_the_same(data, predicate):
    table = table_of(data)
    resolved = resolve_predicate(predicate, DELTA_SCHEMA)
    again = parse_predicate(to_spark_sql(resolved), DELTA_SCHEMA)
    assert evaluate(again, table).to_pylist() == evaluate(resolved, table).to_pylist()


@given(rows(), PREDICATES)
@settings(max_examples=75)
def test_filter_keeps_the_true_rows(data, predicate):
    kept = filter_rows(resolve_predicate(predicate, DELTA_SCHEMA), table_of(data))
    expected = [row for row in data if reference(predicate, row) is True]
    assert kept.num_rows == len(expected)
    assert repr(kept.to_pylist()) == repr(table_of(expected).to_pylist())
