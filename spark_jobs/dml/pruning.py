"""Which files of the target a MERGE can touch: from its condition and from what keys the source has."""

from __future__ import annotations

from collections.abc import Sequence
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
from delta_core.schema.types import (
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from spark_jobs.dml.clauses import MergeClause, sql_text
from spark_jobs.sql_meaning import SqlMeaning

# Floating-point keys are left out: NaN and the two zeros are not ordered the same everywhere.
_ORDERED = (BYTE, SHORT, INTEGER, LONG, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEquality:
    """`target = source`, one of the terms that must hold for a match.

    Attributes:
        target: over the target's columns.
        source: over the source's columns.
        data_type: of the source's side.
        lists: whether the source's values are worth listing one by one: the target's side is made of
            partition columns, whose values a range describes badly.
    """

    target: Expression
    source: Expression
    data_type: DataType
    lists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchFacts:
    """What must hold for a target row to match any source row.

    Attributes:
        target_only: terms over the target alone.
        equalities: terms that tie the target to values that the source has.
    """

    target_only: tuple[Expression, ...] = ()
    equalities: tuple[KeyEquality, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValues:
    """The values of one equality's source side: a list of all of them, or their bounds."""

    low: Any = None
    high: Any = None
    listed: tuple[Any, ...] | None = None


def match_facts(
    on: str,
    *,
    target: StructType,
    source: StructType,
    target_alias: str,
    source_alias: str,
    partition_columns: Sequence[str],
    meaning: SqlMeaning,
) -> MatchFacts:
    """The condition's terms that say something about the target's files.

    Spark decides what matches, as its session's settings say: its time zone, its ANSI mode. Terms of which
    delta_core may make something else say nothing.

    A condition that is not understood, such as one with functions outside delta_core's list, says nothing:
    the merge then looks at every file.
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
    alone, equalities = [], []
    for term in split_conjuncts(predicate):
        if not meaning.agrees(term, both):
            continue
        sides = referenced_names(term)
        if sides == {target_alias}:
            alone.append(_without_alias(term))
        elif isinstance(term, Comparison) and term.operator == ComparisonOperator.EQ:
            left, right = term.left, term.right
            if referenced_names(left) == {source_alias}:
                left, right = right, left
            if referenced_names(left) != {target_alias} or referenced_names(right) != {source_alias}:
                continue
            data_type = type_of(right, both)
            if isinstance(data_type, DecimalType) or data_type in _ORDERED:
                target_side = _without_alias(left)
                names = {path[0] for path in referenced_columns(target_side)}
                equalities.append(
                    KeyEquality(
                        target=target_side,
                        source=right,
                        data_type=data_type,
                        lists=names <= set(partition_columns),
                    )
                )
    return MatchFacts(target_only=tuple(alone), equalities=tuple(equalities))


def target_predicate(
    facts: MatchFacts,
    values: Sequence[KeyValues],
    *,
    source_rows: int,
    schema: StructType,
) -> Expression:
    """What every target row that matches a source row satisfies; TRUE when nothing is known.

    Args:
        facts: of the condition.
        values: for each equality the source's values; null keys are not among them, they match nothing.
        source_rows: rows in the source; without any, nothing matches.
        schema: the target's.
    """
    if source_rows == 0:
        return FALSE
    terms = list(facts.target_only)
    for equality, known in zip(facts.equalities, values, strict=True):
        if known.listed is not None:
            if not known.listed:
                return FALSE
            literals = tuple(Literal(value, equality.data_type) for value in known.listed)
            terms.append(In(equality.target, literals))
        elif known.low is None:
            return FALSE
        else:
            low, high = (Literal(side, equality.data_type) for side in (known.low, known.high))
            terms.append(Comparison(ComparisonOperator.GE, equality.target, low))
            terms.append(Comparison(ComparisonOperator.LE, equality.target, high))
    return resolve_predicate(conjunction(terms), schema)


def by_source_predicate(
    clauses: Sequence[MergeClause], *, target: StructType, target_alias: str, meaning: SqlMeaning
) -> Expression:
    """What every target row satisfies that a `not matched by source` clause can change.

    TRUE when a clause has no condition, or one that is not understood, or one of which the session may make
    something else than delta_core.
    """
    aliased = StructType((StructField(name=target_alias, data_type=target),))
    terms: list[Expression] = []
    for clause in clauses:
        if clause.condition is None:
            return TRUE
        text = sql_text(clause.condition)
        if not meaning.reads(text):
            return TRUE
        try:
            terms.append(_without_alias(parse_predicate(text, aliased)))
        except ExpressionError:
            try:
                terms.append(parse_predicate(text, target))
            except ExpressionError:
                return TRUE
        if not meaning.agrees(terms[-1], target):
            return TRUE
    return disjunction(terms)


def listed_values(column: pa.ChunkedArray) -> tuple[Any, ...] | None:
    """The distinct values but null, or None when there are too many to list."""
    found = column.unique().drop_null().to_pylist()
    return None if len(found) > MAX_LISTED_VALUES else tuple(found)


def _without_alias(expression: Expression) -> Expression:
    """The expression with the alias taken off its columns."""
    match expression:
        case Column(path):
            return Column(path[1:])
        case Comparison(operator, left, right):
            return Comparison(operator, _without_alias(left), _without_alias(right))
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, _without_alias(left), _without_alias(right))
        case Conjunction(terms):
            return Conjunction(tuple(_without_alias(term) for term in terms))
        case Or(terms):
            return Or(tuple(_without_alias(term) for term in terms))
        case Not(operand):
            return Not(_without_alias(operand))
        case IsNull(operand):
            return IsNull(_without_alias(operand))
        case In(operand, values):
            return In(_without_alias(operand), values)
        case Like(operand, pattern):
            return Like(_without_alias(operand), pattern)
        case Cast(operand, data_type):
            return Cast(_without_alias(operand), data_type)
        case Call(name, arguments):
            return Call(name, tuple(_without_alias(argument) for argument in arguments))
        case Literal():
            return expression
