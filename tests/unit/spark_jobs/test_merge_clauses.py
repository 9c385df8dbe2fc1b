"""The clauses of a MERGE as values, and the files that its condition leaves."""

from __future__ import annotations

from typing import Any

import pytest

from delta_core.expressions.ast import TRUE
from delta_core.expressions.render import to_spark_sql
from delta_core.jobs.params.merge import parse_merge
from delta_core.merge.clauses import MergeAction
from delta_core.schema.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    StructField,
    StructType,
)
from spark_jobs.dml.clauses import MergeClause, MergeClauses, clauses_of, merge_parameters, qualifiers, words
from spark_jobs.dml.pruning import KeyValues, by_source_predicate, match_facts, target_predicate
from spark_jobs.expressions.sql_semantics import SqlSemantics

TARGET = StructType(
    (
        StructField(name="id", data_type=LONG),
        StructField(name="part", data_type=STRING),
        StructField(name="x", data_type=DOUBLE),
    )
)
SOURCE = StructType(
    (
        StructField(name="ID", data_type=INTEGER),
        StructField(name="part", data_type=STRING),
        StructField(name="x", data_type=DOUBLE),
    )
)


def test_parameters_are_those_of_delta_spark() -> None:
    params = {
        "source": {"format": "parquet", "uris": ["/s"]},
        "on": "t.id = s.id",
        "matched": [
            {"action": "update", "condition": "s.x > 1", "set": {"x": "s.x"}},
            {"action": "delete"},
        ],
        "not_matched": [{"action": "insert_all"}],
    }
    clauses = clauses_of(parse_merge(params))
    assert merge_parameters("t.id = s.id", clauses) == {
        "predicate": ["t.id = s.id"],
        "matchedPredicates": [{"predicate": "s.x > 1", "actionType": "update"}, {"actionType": "delete"}],
        "notMatchedPredicates": [{"actionType": "insert"}],
        "notMatchedBySourcePredicates": [],
    }
    assert list(clauses.strings()) == ["s.x > 1", "s.x"]


def test_only_where_it_does_not_matter_may_rows_match_twice() -> None:
    delete, insert = MergeClause(action=MergeAction.DELETE), MergeClause(action=MergeAction.INSERT_ALL)
    some = MergeClause(action=MergeAction.DELETE, condition="t.x > 1")
    assert MergeClauses(matched=(delete,)).allows_many_matches
    assert MergeClauses(matched=(delete,), not_matched=(insert,)).allows_many_matches
    assert MergeClauses(not_matched=(insert,)).allows_many_matches
    assert not MergeClauses(matched=(some,)).allows_many_matches
    assert not MergeClauses(matched=(some, delete)).allows_many_matches
    assert not MergeClauses(not_matched_by_source=(delete,)).allows_many_matches


def test_names_in_texts() -> None:
    assert words(["s.`odd name` = 'not this' AND T.Id > 1"]) >= {"s", "odd name", "t", "id"}
    assert "this" not in words(["a = 'not this'"])
    assert qualifiers(["t.id = `my s`.id AND x.y = 'z.z'"]) == ["t", "my s", "x"]


def predicate(on: str, *values: KeyValues, rows: int = 5) -> str:
    facts = match_facts(
        on,
        target=TARGET,
        source=SOURCE,
        target_alias="t",
        source_alias="s",
        partition_columns=("part",),
        meaning=SqlSemantics(),
    )
    assert len(facts.equalities) == len(values)
    return to_spark_sql(target_predicate(facts, values, source_rows=rows, schema=TARGET))


def test_keys_of_the_source_bound_the_target() -> None:
    assert (
        predicate("t.id = s.id", KeyValues(low=3, high=9))
        == "((`id` >= CAST(3 AS BIGINT)) AND (`id` <= CAST(9 AS BIGINT)))"
    )
    listed = KeyValues(listed=("a", "b"))
    assert predicate("s.part = t.part AND t.x > 2", listed) == "((`x` > 2.0e0) AND (`part` IN ('a', 'b')))"
    assert predicate("t.id = s.id", KeyValues(listed=())) == "FALSE"
    assert predicate("t.id = s.id", KeyValues(), rows=0) == "FALSE"
    assert predicate("t.id = s.id", KeyValues()) == "FALSE"


@pytest.mark.parametrize(
    "on", ["t.x = s.x", "t.id <=> s.id", "t.id = s.id OR t.x > 1", "soundex(t.part) = s.part"]
)
def test_what_says_nothing_about_files_prunes_nothing(on: str) -> None:
    assert predicate(on) == "TRUE"


def test_conditions_bound_the_rows_that_no_source_row_matches() -> None:
    def of(*conditions: str | None) -> Any:
        clauses = [MergeClause(action=MergeAction.DELETE, condition=text) for text in conditions]
        return by_source_predicate(clauses, target=TARGET, target_alias="t", meaning=SqlSemantics())

    assert to_spark_sql(of("t.part = 'a'", "x > 1")) == "((`part` = 'a') OR (`x` > 1.0e0))"
    assert of("t.part = 'a'", None) == TRUE
    assert of("soundex(part) = 'a'") == TRUE


TIMES = StructType(
    (
        StructField(name="id", data_type=LONG),
        StructField(name="at", data_type=TIMESTAMP),
        StructField(name="day", data_type=DATE),
    )
)


@pytest.mark.parametrize(
    ("on", "abroad"),
    [
        ("t.id = s.id AND t.at < '2024-01-02'", 1),
        ("t.id = s.id AND cast(t.at AS date) = DATE '2024-01-01'", 1),
        ("t.id = s.id AND t.day = s.at", 1),
        ("t.at = s.at", 0),
        ("t.id = s.id AND t.day >= '2024-01-01'", 2),
        ("t.day = s.day", 1),
    ],
)
def test_instants_prune_only_in_sessions_of_utc(on: str, abroad: int) -> None:
    """Pruned by UTC, a row that matches in New York was not found, and so was inserted a second time."""

    def terms(meaning: SqlSemantics) -> int:
        facts = match_facts(
            on,
            target=TIMES,
            source=TIMES,
            target_alias="t",
            source_alias="s",
            partition_columns=(),
            meaning=meaning,
        )
        return len(facts.target_only) + len(facts.equalities)

    assert terms(SqlSemantics(is_utc=False)) == abroad
    assert terms(SqlSemantics()) == on.count(" AND ") + 1


def test_instants_do_not_bound_unmatched_rows_abroad() -> None:
    clauses = [MergeClause(action=MergeAction.DELETE, condition="t.at < '2024-01-02'")]

    def of(meaning: SqlSemantics) -> Any:
        return by_source_predicate(clauses, target=TIMES, target_alias="t", meaning=meaning)

    assert of(SqlSemantics()) != TRUE
    assert of(SqlSemantics(is_utc=False)) == TRUE


@pytest.mark.parametrize(
    ("on", "plain"),
    [
        ("t.id = s.id AND t.x > 2.5D", 2),
        ("t.id = s.id + 1", 0),
        ("t.id = bigint(s.part)", 0),
        ("t.id = s.id AND t.x > 1.25BD", 2),
        ("t.id = s.id AND t.part LIKE 'a%'", 2),
        ("t.id IN (1L, 2L) AND lower(t.part) = 'a'", 1),
    ],
)
def test_what_a_mode_of_the_session_changes_prunes_only_in_the_usual_one(on: str, plain: int) -> None:
    def terms(meaning: SqlSemantics) -> int:
        facts = match_facts(
            on,
            target=TARGET,
            source=SOURCE,
            target_alias="t",
            source_alias="s",
            partition_columns=(),
            meaning=meaning,
        )
        return len(facts.target_only) + len(facts.equalities)

    assert terms(SqlSemantics(is_usual=False)) == plain
    assert terms(SqlSemantics()) == on.count(" AND ") + 1
    assert terms(SqlSemantics(unlike="=I")) == 0
