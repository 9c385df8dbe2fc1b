"""The clauses of a MERGE, for matched and for unmatched rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_core.jobs.params.merge import MergeParams
from delta_core.jobs.params.merge_clauses import MergeAction, check_clauses

if TYPE_CHECKING:
    from pyspark.sql import Column

    Sql = str | Column
    """Spark SQL text, or a Column that refers to columns by name (`col("s.id")`, not `frame["id"]`)."""

_WORD = re.compile(r"`((?:[^`]|``)+)`|([^\W\d]\w*)")
# A name matches only from its first character, and an unterminated string matches to the end of the SQL text.
# Otherwise the search would restart at each character of a long name or string.
_QUALIFIER = re.compile(r"(?:(?<!`)`((?:[^`]|``)+)`|(?<!\w)([^\W\d]\w*))\s*\.")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\\?$)|\"(?:[^\"\\]|\\.)*(?:\"|\\?$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """One clause of a MERGE: `WHEN ... THEN ...`.

    Attributes:
        action: what the clause does with a row, such as `UPDATE` or `INSERT_ALL`.
        condition: the clause applies to rows for which this is true. When it is null or false, the next
            clause is tried.
        values: for `UPDATE` and `INSERT`, a map from target columns to expressions.
    """

    action: MergeAction
    condition: Sql | None = None
    values: Mapping[str, Sql] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClauses:
    """All clauses of a MERGE. In each list, the first clause whose condition is true applies to a row.

    Raises:
        ConfigurationError: see `delta_core.jobs.params.merge_clauses.check_clauses`.
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


def clauses_of(params: MergeParams) -> MergeClauses:
    """The clauses in the parameters of a merge job."""
    return MergeClauses(
        **{
            name: tuple(
                MergeClause(action=item.action, condition=item.condition, values=item.values)
                for item in clauses
            )
            for name, clauses in params.clauses.items()
        }
    )


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
    """A condition or value as SQL text; for a column, Spark's string representation."""
    if isinstance(value, str):
        return value
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
