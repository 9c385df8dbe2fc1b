"""Uses of columns that prevent a change of the column.

`table_features.column_dependencies` finds the uses; this module has the rules. As in delta-spark, a column
that a CHECK constraint, an invariant or a generation expression refers to cannot be renamed, dropped or given
another type, since the expression would change its meaning. A clustering column cannot be dropped. A rename
also updates `delta.dataSkippingStatsColumns` and the partition columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from delta_core.errors import SchemaEvolutionError
from delta_core.schema.column_paths import Path, display_path, is_related, is_within


class UseKind(StrEnum):
    """The kind of object that uses a column."""

    CHECK = "CHECK constraint"
    INVARIANT = "invariant of column"
    GENERATED = "generated column"
    CLUSTERING = "clustering by"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUse:
    """One use of a column.

    Attributes:
        kind: the kind of object.
        name: the name of the constraint, or of the column with the expression.
        path: the used column, by its logical names, in any case.
        owner: the column whose metadata contains the expression; dropping it removes the use.
    """

    kind: UseKind
    name: str
    path: Path
    owner: Path | None = None


_OF_EXPRESSIONS = frozenset({UseKind.CHECK, UseKind.INVARIANT, UseKind.GENERATED})


def refuse_used_in_expressions(path: Sequence[str], uses: Iterable[ColumnUse], change: str) -> None:
    """Refuse a change of a column that an expression refers to, or that contains or is within such a column.

    Args:
        path: the column.
        uses: the uses of the table's columns.
        change: the refused change as a participle, such as "renamed".

    Raises:
        SchemaEvolutionError: the message lists the uses.
    """
    _refuse(path, [use for use in uses if use.kind in _OF_EXPRESSIONS], change)


def refuse_used(path: Sequence[str], uses: Iterable[ColumnUse], dropped: Sequence[Path]) -> None:
    """Refuse dropping a column with a use that is not dropped in the same change.

    Args:
        path: the column.
        uses: the uses of the table's columns.
        dropped: all columns dropped in the same change.

    Raises:
        SchemaEvolutionError: the message lists the uses.
    """
    remaining = [
        use for use in uses if use.owner is None or not any(is_within(use.owner, one) for one in dropped)
    ]
    _refuse(path, remaining, "dropped")


def _refuse(path: Sequence[str], uses: Iterable[ColumnUse], change: str) -> None:
    used_by = sorted({f"{use.kind} {use.name}" for use in uses if is_related(use.path, path)})
    if used_by:
        raise SchemaEvolutionError(
            f"Column {display_path(path)} cannot be {change}.",
            cause=f"It is used by: {', '.join(used_by)}.",
            fix="Drop the uses first.",
        )
