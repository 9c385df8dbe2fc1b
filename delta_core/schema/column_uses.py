"""What names a column, and so stands in the way of changing it.

`table_features.column_dependencies` finds the uses; here are the rules. As in delta-spark, a column named
by a CHECK constraint, an invariant or a generation expression is neither renamed nor dropped nor given
another type, since the text would no longer mean what it did; a clustering column is not dropped. Names in
`delta.dataSkippingStatsColumns` and partition columns follow a rename by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from delta_core.errors import SchemaEvolutionError
from delta_core.schema.column_paths import Path, is_related, is_within, shown


class UseKind(StrEnum):
    """What a column is used in."""

    CHECK = "CHECK constraint"
    INVARIANT = "invariant of column"
    GENERATED = "generated column"
    CLUSTERING = "clustering by"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUse:
    """One use of a column.

    Attributes:
        kind: in what.
        name: of the constraint, or of the column that has the expression.
        path: the column used, by its logical names, in any case.
        owner: the column whose metadata holds the expression; it goes when that column does.
    """

    kind: UseKind
    name: str
    path: Path
    owner: Path | None = None


_OF_EXPRESSIONS = frozenset({UseKind.CHECK, UseKind.INVARIANT, UseKind.GENERATED})


def refuse_used_in_expressions(path: Sequence[str], uses: Iterable[ColumnUse], change: str) -> None:
    """Refuse a change of a column that an expression names, or that has or lies in one that is named.

    Args:
        path: the column.
        uses: of the table's columns.
        change: what cannot be done, such as "renamed".

    Raises:
        SchemaEvolutionError: names what uses it.
    """
    _refuse(path, [use for use in uses if use.kind in _OF_EXPRESSIONS], change)


def refuse_used(path: Sequence[str], uses: Iterable[ColumnUse], dropped: Sequence[Path]) -> None:
    """Refuse dropping a column that is used by something that is not dropped along with it.

    Args:
        path: the column.
        uses: of the table's columns.
        dropped: all columns that go in the same change.

    Raises:
        SchemaEvolutionError: names what uses it.
    """
    staying = [
        use for use in uses if use.owner is None or not any(is_within(use.owner, one) for one in dropped)
    ]
    _refuse(path, staying, "dropped")


def _refuse(path: Sequence[str], uses: Iterable[ColumnUse], change: str) -> None:
    found = sorted({f"{use.kind} {use.name}" for use in uses if is_related(use.path, path)})
    if found:
        raise SchemaEvolutionError(
            f"Column {shown(path)} cannot be {change}",
            cause=f"It is used by: {', '.join(found)}",
            fix="Drop what uses it first",
        )
