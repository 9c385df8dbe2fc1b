"""The result of a comparison of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDiff:
    """The difference in rows that a restore would make, as a multiset.

    Attributes:
        rows_lost: number of rows that the table has and the restore would remove.
        rows_returned: number of rows that the table does not have and the restore would add.
        rows_kept: number of rows that are in removed and in added files; files that stay are not counted.
        sample_lost, sample_returned: some lost and returned rows, each a JSON object of bounded size.
        only_in_snapshot, only_in_target: columns that the other version lacks; its values count as null.
        incompatible: columns whose types have no common type, so that all values differ.
        unreadable: files that could not be read; their rows are not counted.
    """

    rows_lost: int
    rows_returned: int
    rows_kept: int = 0
    sample_lost: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    sample_returned: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    only_in_snapshot: tuple[str, ...] = ()
    only_in_target: tuple[str, ...] = ()
    incompatible: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """False when files could not be read, so that more rows may differ."""
        return not self.unreadable

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that explain the row counts."""
        notes = []
        if self.only_in_snapshot:
            notes.append(
                f"The target version lacks {_names(self.only_in_snapshot)}. The comparison uses null instead."
            )
        if self.only_in_target:
            notes.append(
                f"The newest version lacks {_names(self.only_in_target)}. The comparison uses null instead."
            )
        if self.incompatible:
            notes.append(
                f"The type of {_names(self.incompatible)} changed. Every row with a value in it differs."
            )
        if self.unreadable:
            count = len(self.unreadable)
            unread = (
                "1 file could not be read and is"
                if count == 1
                else f"{count} files could not be read and are"
            )
            notes.append(f"{unread} not counted, such as {self.unreadable[0]}.")
        return tuple(notes)

    def to_json(self) -> dict[str, Any]:
        """The difference as a JSON object."""
        return {
            "rows_lost": self.rows_lost,
            "rows_returned": self.rows_returned,
            "rows_kept": self.rows_kept,
            "exact": self.is_exact,
            "sample_lost": [dict(row) for row in self.sample_lost],
            "sample_returned": [dict(row) for row in self.sample_returned],
            "notes": list(self.notes),
            "unreadable": list(self.unreadable),
        }


def _names(names: tuple[str, ...]) -> str:
    kind = "column" if len(names) == 1 else "columns"
    return f"the {kind} {', '.join(names)}"
