"""What a comparison of rows found, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDiff:
    """The difference in rows that a restore would make, as a multiset.

    Attributes:
        rows_lost: rows that the table has now and would not have.
        rows_returned: rows that it does not have now and would have.
        rows_kept: rows that stand in files of both sides; those of shared files are not among them.
        sample_lost, sample_returned: some of them, each a JSON object of bounded size.
        only_now, only_then: columns that the other version lacks; their values there count as null.
        apart: columns whose two types have no common one: all their values differ.
        unreadable: files that could not be read and whose rows do not count.
    """

    rows_lost: int
    rows_returned: int
    rows_kept: int = 0
    sample_lost: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    sample_returned: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    only_now: tuple[str, ...] = ()
    only_then: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """False when files could not be read, so that there may be more differences."""
        return not self.unreadable

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures must know, in sentences."""
        notes = []
        if self.only_now:
            notes.append(f"The target lacks {_names(self.only_now)}; rows are compared as if null there.")
        if self.only_then:
            notes.append(f"The table lacks {_names(self.only_then)}; rows are compared as if null there.")
        if self.apart:
            notes.append(f"The type of {_names(self.apart)} changed: every row with a value there differs.")
        if self.unreadable:
            count = len(self.unreadable)
            what = (
                "1 file could not be read and is"
                if count == 1
                else f"{count} files could not be read and are"
            )
            notes.append(f"{what} not counted, such as {self.unreadable[0]}.")
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
