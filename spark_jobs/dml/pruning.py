"""File pruning of a MERGE: the target files that can match, from the condition and the source's keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import (
    FALSE,
    TRUE,
    Arithmetic,
    Call,
    Cast,
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from delta_core.expressions.ast import And as Conjunction
from delta_core.expressions.columns import (
    conjunction,
    disjunction,
    referenced_columns,
    referenced_names,
    split_conjuncts,
)
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.skipping import MAX_LISTED_VALUES
from delta_core.expressions.typing import resolve_predicate, type_of
from delta_core.merge.condition import KeyValues as KeyValues
from delta_core.merge.condition import limits_files
from delta_core.schema.types import DataType, StructField, StructType
from spark_jobs.dml.clauses import MergeClause, sql_text
from spark_jobs.expressions.sql_semantics import SqlSemantics


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEquality:
    """`target = source`, one of the terms that must hold for a match.

    Attributes:
        target: the expression over the target's columns.
        source: the expression over the source's columns.
        data_type: the type of the source expression.
        lists: whether to list the source's values one by one. True when the target expression has only
            partition columns, for which a range of values prunes badly.
    """

    target: Expression
    source: Expression
    data_type: DataType
    lists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchFacts:
    """Conditions that a target row must satisfy to match any source row.

    Attributes:
        target_only: terms over the target's columns only.
        equalities: terms that compare the target with values of the source.
    """

    target_only: tuple[Expression, ...] = ()
    equalities: tuple[KeyEquality, ...] = ()


def match_facts(
    on: str,
    *,
    target: StructType,
    source: StructType,
    target_alias: str,
    source_alias: str,
    partition_columns: Sequence[str],
    meaning: SqlSemantics,
) -> MatchFacts:
    """The terms of the condition that can prune files of the target.

    Spark evaluates the matches with its session's settings, such as time zone and ANSI mode. Terms that
    delta_core may evaluate differently are not used.

    A condition that delta_core cannot parse, such as one with unsupported functions, prunes nothing: the
    merge then reads every file.
    """
    both = StructType(
        (
            StructField(name=target_alias, data_type=target),
            StructField(name=source_alias, data_type=source),
        )
    )
    if not meaning.reads(on):
        return MatchFacts()
    try:
        predicate = parse_predicate(on, both)
    except ExpressionError:
        return MatchFacts()
    target_only, equalities = [], []
    for term in split_conjuncts(predicate):
        if not meaning.agrees(term, both):
            continue
        sides = referenced_names(term)
        if sides == {target_alias}:
            target_only.append(_without_first(term))
        elif isinstance(term, Comparison) and term.operator == ComparisonOperator.EQ:
            left, right = term.left, term.right
            if referenced_names(left) == {source_alias}:
                left, right = right, left
            if referenced_names(left) != {target_alias} or referenced_names(right) != {source_alias}:
                continue
            data_type = type_of(right, both)
            if limits_files(data_type):
                target_side = _without_first(left)
                names = {path[0] for path in referenced_columns(target_side)}
                equalities.append(
                    KeyEquality(
                        target=target_side,
                        source=right,
                        data_type=data_type,
                        lists=names <= set(partition_columns),
                    )
                )
    return MatchFacts(target_only=tuple(target_only), equalities=tuple(equalities))


def target_predicate(
    facts: MatchFacts,
    values: Sequence[KeyValues],
    *,
    source_rows: int,
    schema: StructType,
) -> Expression:
    """A predicate that holds for every target row that matches a source row; TRUE when nothing is known.

    Args:
        facts: the terms of the condition.
        values: the source's values for each equality, without nulls, because null keys match nothing.
        source_rows: the number of source rows. An empty source matches nothing.
        schema: the target's schema.
    """
    if source_rows == 0:
        return FALSE
    terms = list(facts.target_only)
    for equality, key_values in zip(facts.equalities, values, strict=True):
        terms += key_values.terms(equality.target, equality.data_type)
    return FALSE if FALSE in terms else resolve_predicate(conjunction(terms), schema)


def by_source_predicate(
    clauses: Sequence[MergeClause], *, target: StructType, target_alias: str, meaning: SqlSemantics
) -> Expression:
    """A predicate that holds for every target row that a `not matched by source` clause can change.

    TRUE when a clause has no condition, or when delta_core cannot parse the condition or may evaluate it
    differently than the session.
    """
    aliased = StructType((StructField(name=target_alias, data_type=target),))
    terms: list[Expression] = []
    for clause in clauses:
        if clause.condition is None:
            return TRUE
        sql = sql_text(clause.condition)
        if not meaning.reads(sql):
            return TRUE
        try:
            terms.append(_without_first(parse_predicate(sql, aliased)))
        except ExpressionError:
            try:
                terms.append(parse_predicate(sql, target))
            except ExpressionError:
                return TRUE
        if not meaning.agrees(terms[-1], target):
            return TRUE
    return disjunction(terms)


def listed_values(column: pa.ChunkedArray) -> tuple[Any, ...] | None:
    """The distinct values without null, or None when there are too many to list."""
    distinct = column.unique().drop_null().to_pylist()
    return None if len(distinct) > MAX_LISTED_VALUES else tuple(distinct)


def _without_first(expression: Expression) -> Expression:
    """The expression with the alias removed from its columns."""
    return _renamed(expression, lambda path: path[1:])


def without_alias(expression: Expression, alias: str, schema: StructType) -> Expression:
    """The expression with the table's alias removed from the columns that have it.

    Spark reads `t.id` in a table with the alias `t` as the column `id`, also where `t` is a struct column.
    """

    def renamed(path: tuple[str, ...]) -> tuple[str, ...]:
        if len(path) < 2 or path[0].casefold() != alias.casefold() or schema.find(path[1]) is None:
            return path
        return path[1:]

    return _renamed(expression, renamed)


def _renamed(expression: Expression, rename: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Expression:
    def of(part: Expression) -> Expression:
        return _renamed(part, rename)

    match expression:
        case Column(path):
            return Column(rename(path))
        case Comparison(operator, left, right):
            return Comparison(operator, of(left), of(right))
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, of(left), of(right))
        case Conjunction(terms):
            return Conjunction(tuple(of(term) for term in terms))
        case Or(terms):
            return Or(tuple(of(term) for term in terms))
        case Not(operand):
            return Not(of(operand))
        case IsNull(operand):
            return IsNull(of(operand))
        case In(operand, values):
            return In(of(operand), values)
        case Like(operand, pattern):
            return Like(of(operand), pattern)
        case Cast(operand, data_type):
            return Cast(of(operand), data_type)
        case Call(name, arguments):
            return Call(name, tuple(of(argument) for argument in arguments))
        case Literal():
            return expression
