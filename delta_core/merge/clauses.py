"""The clauses of a MERGE and their rules: which clause applies to a row, and which duplicates are allowed.

An engine chooses the first clause of a list whose condition is true. A null condition is not true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, TypeAlias

from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.expressions.render import to_spark_sql

Sql: TypeAlias = Any
"""SQL text, or a condition or value in an engine's own form: an expression tree, or a column of Spark."""

_WORD = re.compile(r"`((?:[^`]|``)+)`|([^\W\d]\w*)")
# A name matches only from its first character, and an unterminated string matches to the end of the SQL text.
# Otherwise the search would restart at each character of a long name or string.
_QUALIFIER = re.compile(r"(?:(?<!`)`((?:[^`]|``)+)`|(?<!\w)([^\W\d]\w*))\s*\.")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\\?$)|\"(?:[^\"\\]|\\.)*(?:\"|\\?$)")


class MergeAction(StrEnum):
    """The action of a clause. The `_ALL` actions use every column of the source by name."""

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
    def takes_values(self) -> bool:
        """True for the actions that need a mapping of columns to expressions."""
        return self in (MergeAction.UPDATE, MergeAction.INSERT)

    @property
    def kind(self) -> str:
        """The kind of action: `update`, `delete` or `insert`."""
        return self.value.removesuffix("_all")


ACTIONS: Final[Mapping[str, tuple[MergeAction, ...]]] = {
    "matched": (MergeAction.UPDATE, MergeAction.UPDATE_ALL, MergeAction.DELETE),
    "not_matched": (MergeAction.INSERT, MergeAction.INSERT_ALL),
    "not_matched_by_source": (MergeAction.UPDATE, MergeAction.DELETE),
}
"""The actions that each list of clauses allows."""


class Clause(Protocol):
    """A clause, with conditions and values as SQL text or in another form."""

    @property
    def action(self) -> MergeAction:
        """The action of the clause."""

    @property
    def condition(self) -> object | None:
        """The clause applies to rows for which this is true; None applies it to every row."""

    @property
    def values(self) -> Mapping[str, object] | None:
        """For `UPDATE` and `INSERT`, a map from target columns to expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """One clause of a MERGE: `WHEN ... THEN ...`.

    Attributes:
        action: what the clause does with a row, such as `UPDATE` or `INSERT_ALL`.
        condition: the clause applies to rows for which this is true. When it is null or false, the next
            clause is tried.
        values: for `UPDATE` and `INSERT`, a map from target columns to expressions.
        except_columns: for the `_ALL` actions, columns of the source that are not used.
    """

    action: MergeAction
    condition: Sql | None = None
    values: Mapping[str, Sql] | None = None
    except_columns: tuple[str, ...] = ()

    def takes(self, column: str) -> bool:
        """Whether an `_ALL` action uses this column of the source."""
        return self.action.takes_all and column.casefold() not in map(str.casefold, self.except_columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClauses:
    """All clauses of a MERGE. In each list, the first clause whose condition is true applies to a row.

    Raises:
        ConfigurationError: see `check_clauses`.
    """

    matched: tuple[MergeClause, ...] = ()
    not_matched: tuple[MergeClause, ...] = ()
    not_matched_by_source: tuple[MergeClause, ...] = ()

    def __post_init__(self) -> None:
        """Check the clauses."""
        check_clauses(
            {
                "matched": self.matched,
                "not_matched": self.not_matched,
                "not_matched_by_source": self.not_matched_by_source,
            }
        )

    @property
    def is_insert_only(self) -> bool:
        """True when no row of the target can change."""
        return not self.matched and not self.not_matched_by_source

    @property
    def allows_many_matches(self) -> bool:
        """True when several source rows may match the same target row.

        This holds when the merge only inserts unmatched rows, and when it deletes every matched row.
        """
        every_match_is_deleted = (
            len(self.matched) == 1
            and self.matched[0].action is MergeAction.DELETE
            and self.matched[0].condition is None
        )
        return self.is_insert_only or every_match_is_deleted

    def strings(self) -> Iterator[str]:
        """Every condition and value as SQL text."""
        for clause in (*self.matched, *self.not_matched, *self.not_matched_by_source):
            if clause.condition is not None:
                yield sql_text(clause.condition)
            for value in (clause.values or {}).values():
                yield sql_text(value)


def conditions(clauses: Sequence[MergeClause]) -> list[str]:
    """The conditions of the clauses as SQL text."""
    return [sql_text(clause.condition) for clause in clauses if clause.condition is not None]


def merge_parameters(on: Sql, clauses: MergeClauses) -> dict[str, Any]:
    """The merge's `commitInfo.operationParameters`, with delta-spark's names."""

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
    """A condition or value as SQL text; for a column of Spark, its string representation."""
    if isinstance(value, str):
        return value
    if isinstance(value, Expression):
        return to_spark_sql(value)
    return re.sub(r"^Column<'(.*)'>$", r"\1", str(value), flags=re.DOTALL)


def words(strings: Sequence[str]) -> set[str]:
    """A superset of the names in SQL expressions, in lower case."""
    names = set()
    for sql in strings:
        for quoted, plain in _WORD.findall(_STRING.sub(" ", sql)):
            names.add((quoted.replace("``", "`") or plain).casefold())
    return names


def qualifiers(strings: Sequence[str]) -> list[str]:
    """Every name before a dot in SQL expressions, in order of appearance."""
    names: dict[str, None] = {}
    for sql in strings:
        for quoted, plain in _QUALIFIER.findall(_STRING.sub(" ", sql)):
            names.setdefault(quoted.replace("``", "`") or plain)
    return list(names)


def check_clauses(lists: Mapping[str, Sequence[Clause]]) -> None:
    """Check the lists of clauses of one merge, by the names in `ACTIONS`.

    Raises:
        ConfigurationError: the merge has no clause, a clause has an action that its list does not allow or
            lacks values, or a clause follows a clause without a condition and could never apply.
    """
    if not any(lists.values()):
        raise ConfigurationError(
            "The merge has no clause.", fix="Add a clause for matched rows or for unmatched rows."
        )
    for name, clauses in lists.items():
        for index, clause in enumerate(clauses):
            _check(name, index, clause, is_last=index == len(clauses) - 1)


def _check(name: str, index: int, clause: Clause, *, is_last: bool) -> None:
    if clause.action not in ACTIONS[name]:
        raise ConfigurationError(
            f"The action {clause.action.value!r} is not allowed for {name} rows.",
            fix=f"Choose {', '.join(action.value for action in ACTIONS[name])}.",
        )
    if clause.action.takes_values != bool(clause.values):
        raise ConfigurationError(
            f"The {name} clause {index + 1} ({clause.action.value}) "
            + ("sets no column." if clause.action.takes_values else "takes no values."),
            fix="Name the columns and their values, or use the action that takes all columns.",
        )
    if clause.condition is None and not is_last:
        raise ConfigurationError(
            f"The {name} clause {index + 1} has no condition, so the later clauses can never apply.",
            fix="Add a condition to every clause of the list except the last.",
        )


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"
