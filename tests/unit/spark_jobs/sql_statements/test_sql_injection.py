"""Hostile texts in the arguments of a statement are data or refused, and never another statement."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from delta_core.errors import DeltaError
from delta_core.expressions.render import quote_name, quote_string
from spark_jobs.sql_statements import statements as kinds
from spark_jobs.sql_statements.parsing.cursor import Bindings
from spark_jobs.sql_statements.parsing.parse import parse_statement
from spark_jobs.sql_statements.parsing.tokens import SqlSource, TokenKind, tokens_of
from tests.support.injection import payloads
from tests.support.soak import SEED, rounds

ALL = payloads()
SAMPLE = random.Random(SEED).sample(ALL, rounds(usual=100, soak=len(ALL)))

_STRINGS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("COMMENT ON TABLE t IS {}", lambda s: s.comment),
    ("ALTER TABLE t SET LOCATION {}", lambda s: s.location),
    ("ALTER TABLE t SET TBLPROPERTIES ('a' = {})", lambda s: s.properties["a"]),
    ("ALTER TABLE t SET TBLPROPERTIES ({} = 'a')", lambda s: next(iter(s.properties))),
    ("ALTER TABLE t ALTER COLUMN c COMMENT {}", lambda s: s.comment),
    ("ALTER TABLE t ADD COLUMN c INT COMMENT {}", lambda s: s.columns[0].definition.comment),
    ("CREATE TABLE t (c INT COMMENT {})", lambda s: s.columns[0].comment),
    ("CREATE TABLE t (c INT) COMMENT {}", lambda s: s.comment),
    ("CREATE TABLE t (c INT) LOCATION {}", lambda s: s.location),
    ("COPY INTO t FROM {} FILEFORMAT = CSV", lambda s: s.location),
    ("SHOW TBLPROPERTIES t ({})", lambda s: s.key),
)
_NAMES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("DELETE FROM {}", lambda s: s.table.parts[0]),
    ("DELETE FROM delta.{}", lambda s: s.table.parts[1]),
    ("VACUUM db.{}", lambda s: s.table.parts[1]),
    ("ALTER TABLE t DROP COLUMN {}", lambda s: s.columns[0][0]),
    ("ALTER TABLE t DROP CONSTRAINT {}", lambda s: s.name),
    ("ALTER TABLE t RENAME COLUMN {} TO a", lambda s: s.column[0]),
    ("CREATE TABLE t ({} INT)", lambda s: s.columns[0].name),
    ("OPTIMIZE t ZORDER BY ({})", lambda s: s.zorder_by[0]),
    ("SELECT * FROM {}", lambda s: s.query.tables[0].table.parts[0]),
    ("MERGE INTO t USING {} ON a WHEN MATCHED THEN DELETE", lambda s: s.source.parts[0]),
    ("CONVERT TO DELTA parquet.{}", lambda s: s.path),
)


def test_there_are_enough_payloads() -> None:
    assert len(set(ALL)) >= 500


@pytest.mark.parametrize(
    ("template", "value"), _STRINGS, ids=lambda item: item if isinstance(item, str) else ""
)
def test_a_string_is_data(template: str, value: Callable[[Any], Any]) -> None:
    for payload in SAMPLE:
        quoted = parse_statement(template.format(quote_string(payload)))
        bound = parse_statement(template.format(":p"), Bindings(named={"p": payload}))
        assert value(quoted) == value(bound) == payload
        assert type(quoted) is type(bound)


@pytest.mark.parametrize(
    ("template", "value"), _NAMES, ids=lambda item: item if isinstance(item, str) else ""
)
def test_a_name_is_data(template: str, value: Callable[[Any], Any]) -> None:
    usual = type(parse_statement(template.format("`x`")))
    for payload in filter(None, SAMPLE):
        statement = parse_statement(template.format(quote_name(payload)))
        assert type(statement) is usual
        assert value(statement) == payload


def test_a_parameter_in_an_expression_is_one_constant() -> None:
    for payload in SAMPLE:
        statement = parse_statement("UPDATE t SET a = :p WHERE b = :p AND c", Bindings(named={"p": payload}))
        assert isinstance(statement, kinds.Update)
        assert statement.where is not None
        for sql, count in ((statement.assignments[0][1], 1), (statement.where.sql, 5)):
            tokens = tokens_of(SqlSource(sql))[:-1]
            assert len(tokens) == count
            assert [token.value for token in tokens if token.kind is TokenKind.STRING] == [payload]


def test_an_unquoted_text_is_refused_or_is_an_expression_of_the_same_statement() -> None:
    for payload in SAMPLE:
        try:
            statement = parse_statement(f"DELETE FROM t WHERE a = '{payload}' AND b")
        except DeltaError:
            continue
        assert isinstance(statement, kinds.Delete)
        assert statement.table.parts == ("t",)


def test_a_hostile_name_in_an_identifier_clause_is_one_name_or_refused() -> None:
    for payload in SAMPLE:
        try:
            statement = parse_statement("DELETE FROM IDENTIFIER(:p)", Bindings(named={"p": payload}))
        except DeltaError:
            continue
        assert isinstance(statement, kinds.Delete)
        assert statement.where is None
