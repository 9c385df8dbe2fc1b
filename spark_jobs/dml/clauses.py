"""What a MERGE does with matched rows and with those without a match, as values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from delta_core.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import Column

    Sql = str | Column
    """Spark SQL text, or a column made of names (`col("s.id")`), not of another DataFrame's columns."""

_WORD = re.compile(r"`((?:[^`]|``)+)`|([^\W\d]\w*)")
# A name begins where none is going on, and a text without an end goes to the end: otherwise each letter of a
# long one would be a place to begin again at.
_QUALIFIER = re.compile(r"(?:(?<!`)`((?:[^`]|``)+)`|(?<!\w)([^\W\d]\w*))\s*\.")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\\?$)|\"(?:[^\"\\]|\\.)*(?:\"|\\?$)")


class MergeAction(StrEnum):
    """What a clause does; the `_ALL` actions take every column of the source by name."""

    UPDATE = "update"
    UPDATE_ALL = "update_all"
    DELETE = "delete"
    INSERT = "insert"
    INSERT_ALL = "insert_all"

    @property
    def takes_all(self) -> bool:
        """True for the actions that are written `*`."""
        return self in (MergeAction.UPDATE_ALL, MergeAction.INSERT_ALL)

    @property
    def kind(self) -> str:
        """`update`, `delete` or `insert`."""
        return self.value.removesuffix("_all")


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """One `WHEN ... THEN ...`.

    Attributes:
        action: what is done.
        condition: only rows for which it is true; null and false leave the row to the next clause.
        values: target column: expression, for `UPDATE` and `INSERT`.
    """

    action: MergeAction
    condition: Sql | None = None
    values: Mapping[str, Sql] | None = None


_ALLOWED = {
    "matched": (MergeAction.UPDATE, MergeAction.UPDATE_ALL, MergeAction.DELETE),
    "not_matched": (MergeAction.INSERT, MergeAction.INSERT_ALL),
    "not_matched_by_source": (MergeAction.UPDATE, MergeAction.DELETE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClauses:
    """All clauses; in each list the first whose condition is true decides about a row.

    Raises:
        ConfigurationError: there is no clause, one that does not belong in its list, one without values,
            or one after a clause without a condition, which it could never get a row from.
    """

    matched: tuple[MergeClause, ...] = ()
    not_matched: tuple[MergeClause, ...] = ()
    not_matched_by_source: tuple[MergeClause, ...] = ()

    def __post_init__(self) -> None:
        """Check the clauses."""
        if not (self.matched or self.not_matched or self.not_matched_by_source):
            raise ConfigurationError(
                "The merge has no clause.", fix="Say what is done with matched rows or with the others."
            )
        for name, allowed in _ALLOWED.items():
            _check(name, getattr(self, name), allowed)

    @property
    def is_insert_only(self) -> bool:
        """True when no row of the target can change."""
        return not self.matched and not self.not_matched_by_source

    @property
    def allows_many_matches(self) -> bool:
        """True when it does not matter which of several source rows matches a target row.

        That is so when nothing is done with matched rows but to insert the others, and when every matched
        row is deleted.
        """
        every_match_is_deleted = (
            len(self.matched) == 1
            and self.matched[0].action is MergeAction.DELETE
            and self.matched[0].condition is None
        )
        return self.is_insert_only or every_match_is_deleted

    def strings(self) -> Iterator[str]:
        """Every condition and value as text."""
        for clause in (*self.matched, *self.not_matched, *self.not_matched_by_source):
            if clause.condition is not None:
                yield sql_text(clause.condition)
            for value in (clause.values or {}).values():
                yield sql_text(value)


def conditions(clauses: Sequence[MergeClause]) -> list[str]:
    """The texts of the conditions that there are."""
    return [sql_text(clause.condition) for clause in clauses if clause.condition is not None]


def clauses_from_json(params: Mapping[str, Any]) -> MergeClauses:
    """The clauses in a job's parameters.

    Raises:
        ConfigurationError: see `MergeClauses`.
    """

    def parsed(name: str, values: str) -> tuple[MergeClause, ...]:
        return tuple(
            MergeClause(
                action=MergeAction(item["action"]),
                condition=item.get("condition"),
                values=None
                if item.get(values) is None
                else {key: str(text) for key, text in item[values].items()},
            )
            for item in params.get(name) or ()
        )

    return MergeClauses(
        matched=parsed("matched", "set"),
        not_matched=parsed("not_matched", "values"),
        not_matched_by_source=parsed("not_matched_by_source", "set"),
    )


def merge_parameters(on: Sql, clauses: MergeClauses) -> dict[str, Any]:
    """`commitInfo.operationParameters`, named as delta-spark names them."""

    def described(items: Sequence[MergeClause]) -> list[dict[str, str]]:
        return [
            {
                **({} if item.condition is None else {"predicate": sql_text(item.condition)}),
                "actionType": item.action.kind,
            }
            for item in items
        ]

    return {
        "predicate": [sql_text(on)],
        "matchedPredicates": described(clauses.matched),
        "notMatchedPredicates": described(clauses.not_matched),
        "notMatchedBySourcePredicates": described(clauses.not_matched_by_source),
    }


def sql_text(value: Sql) -> str:
    """The text of a condition or value; of a column, what Spark prints for it."""
    if isinstance(value, str):
        return value
    return re.sub(r"^Column<'(.*)'>$", r"\1", str(value), flags=re.DOTALL)


def words(strings: Sequence[str]) -> set[str]:
    """Every name that SQL texts could mention, in lower case; more than they do mention is possible."""
    found = set()
    for text in strings:
        for quoted, plain in _WORD.findall(_STRING.sub(" ", text)):
            found.add((quoted.replace("``", "`") or plain).casefold())
    return found


def qualifiers(strings: Sequence[str]) -> list[str]:
    """Every name that stands before a dot in SQL texts, in order of appearance."""
    found: dict[str, None] = {}
    for text in strings:
        for quoted, plain in _QUALIFIER.findall(_STRING.sub(" ", text)):
            found.setdefault(quoted.replace("``", "`") or plain)
    return list(found)


def _check(name: str, clauses: Sequence[MergeClause], allowed: Sequence[MergeAction]) -> None:
    for index, clause in enumerate(clauses):
        if clause.action not in allowed:
            raise ConfigurationError(
                f"{clause.action.value!r} is no action for {name} rows.",
                fix=f"Choose {', '.join(action.value for action in allowed)}.",
            )
        needs_values = clause.action in (MergeAction.UPDATE, MergeAction.INSERT)
        if needs_values != bool(clause.values):
            raise ConfigurationError(
                f"The {name} clause {index + 1} ({clause.action.value}) "
                + ("sets no column." if needs_values else "takes no values."),
                fix="Name the columns and their values, or use the action that takes all columns.",
            )
        if clause.condition is None and index < len(clauses) - 1:
            raise ConfigurationError(
                f"The {name} clause {index + 1} has no condition, so the clauses after it get no row.",
                fix="Only the last clause of a list may leave its condition out.",
            )
