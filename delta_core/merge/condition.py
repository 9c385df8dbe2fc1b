"""The condition of a MERGE, split into equalities, terms of one side, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delta_core.expressions.ast import FALSE, TRUE, Comparison, ComparisonOperator, Expression, In, Literal
from delta_core.expressions.columns import (
    conjunction,
    disjunction,
    referenced_columns,
    referenced_names,
    split_conjuncts,
)
from delta_core.expressions.skipping import MAX_LISTED_VALUES
from delta_core.expressions.typing import resolve_predicate, type_of
from delta_core.merge.clauses import MergeClause
from delta_core.merge.names import MergeNames
from delta_core.schema.types import (
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

# Floating-point keys are excluded, because engines order NaN and the two zeros differently.
_ORDERED = (BYTE, SHORT, INTEGER, LONG, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)


def limits_files(key_type: DataType) -> bool:
    """Whether the values of a key of this type limit the files that can match."""
    return isinstance(key_type, DecimalType) or key_type in _ORDERED


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEquality:
    """`target = source` or `target <=> source`, one of the terms that must hold for a match.

    Attributes:
        target, source: expressions over one side each, resolved.
        null_safe: whether two nulls are equal.
        source_type: the type of the source expression.
        lists: whether the target expression has only partition columns.
    """

    target: Expression
    source: Expression
    null_safe: bool
    source_type: DataType
    lists: bool

    @property
    def prunes(self) -> bool:
        """Whether the source's values limit the target's files."""
        return limits_files(self.source_type) and not self.null_safe


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The terms of a condition. A row matches when all of them are true; null is not true.

    Attributes:
        equalities: see `KeyEquality`.
        target_only, source_only: the terms over one side.
        residual: the conjunction of the other terms; TRUE without other terms.
    """

    equalities: tuple[KeyEquality, ...] = ()
    target_only: tuple[Expression, ...] = ()
    source_only: tuple[Expression, ...] = ()
    residual: Expression = TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValues:
    """The source's values of one equality without null: all of them, or their minimum and maximum."""

    low: Any = None
    high: Any = None
    listed: tuple[Any, ...] | None = None

    def terms(self, target: Expression, key_type: DataType) -> list[Expression]:
        """The terms that hold for every row whose value of `target` is one of these."""
        if self.listed is not None:
            if not self.listed:
                return [FALSE]
            return [In(target, tuple(Literal(value, key_type) for value in self.listed))]
        if self.low is None:
            return [FALSE]
        low, high = (Literal(side, key_type) for side in (self.low, self.high))
        return [
            Comparison(ComparisonOperator.GE, target, low),
            Comparison(ComparisonOperator.LE, target, high),
        ]


def split_condition(on: Any, names: MergeNames, *, partition_columns: tuple[str, ...]) -> Condition:
    """Parse and split the condition.

    Raises:
        ExpressionError: it cannot be parsed, does not fit the columns, or is not a condition.
    """
    schema = names.schema
    predicate = resolve_predicate(names.parsed(on), schema)
    partitions = {name.casefold() for name in partition_columns}
    equalities, target_only, source_only, rest = [], [], [], []
    for term in split_conjuncts(predicate):
        sides = referenced_names(term)
        if sides == {names.target_alias}:
            target_only.append(term)
        elif sides == {names.source_alias}:
            source_only.append(term)
        elif (found := _equality(term, names, partitions)) is not None:
            equalities.append(found)
        elif term != TRUE:
            rest.append(term)
    return Condition(
        equalities=tuple(equalities),
        target_only=tuple(target_only),
        source_only=tuple(source_only),
        residual=conjunction(rest),
    )


def _equality(term: Expression, names: MergeNames, partitions: set[str]) -> KeyEquality | None:
    if not isinstance(term, Comparison):
        return None
    if term.operator not in (ComparisonOperator.EQ, ComparisonOperator.EQ_NULL_SAFE):
        return None
    left, right = term.left, term.right
    if referenced_names(left) == {names.source_alias}:
        left, right = right, left
    if referenced_names(left) != {names.target_alias} or referenced_names(right) != {names.source_alias}:
        return None
    source_type = type_of(right, names.schema)
    if VOID in (source_type, type_of(left, names.schema)):
        return None
    columns = {path[1].casefold() for path in referenced_columns(left)}
    return KeyEquality(
        target=left,
        source=right,
        null_safe=term.operator == ComparisonOperator.EQ_NULL_SAFE,
        source_type=source_type,
        lists=columns <= partitions,
    )


def match_predicate(
    condition: Condition, values: tuple[KeyValues | None, ...], names: MergeNames, *, source_rows: int
) -> Expression:
    """A predicate on the table that is true for every row that matches a source row.

    Args:
        condition: the condition.
        values: the source's values of each equality; None where nothing is known.
        names: the names of the condition.
        source_rows: the number of source rows. An empty source matches nothing.
    """
    if source_rows == 0:
        return FALSE
    terms = [names.without_alias(term) for term in condition.target_only]
    for equality, known in zip(condition.equalities, values, strict=True):
        if known is None:
            continue
        terms += known.terms(names.without_alias(equality.target), equality.source_type)
    if FALSE in terms:
        return FALSE
    return resolve_predicate(conjunction(terms), names.target) if terms else TRUE


def read_predicate(matching: Expression, by_source: tuple[MergeClause, ...], names: MergeNames) -> Expression:
    """A predicate that is true for every row of the table that the merge may match or change.

    Args:
        matching: the predicate of `match_predicate`.
        by_source: the clauses for rows without a match in the source.
        names: the names of the clauses.
    """
    if not by_source or matching == TRUE:
        return matching
    terms = [matching]
    for clause in by_source:
        if clause.condition is None:
            return TRUE
        terms.append(names.without_alias(names.parsed(clause.condition, source=False)))
    return resolve_predicate(disjunction(terms), names.target)


MOST_LISTED = MAX_LISTED_VALUES
"""The maximum number of values of a key that are listed in a predicate."""
