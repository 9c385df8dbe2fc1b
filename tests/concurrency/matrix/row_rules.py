"""The rules for commits on a table with deletion vectors, over declared rows. Nothing here calls the library.

From docs/concurrency.md, "Which pairs both commit":

* What changes no data (a rewrite) conflicts with a rewrite of the same files only. Deletions of its rows are
  carried over.
* A statement conflicts if the winner changed a row that it changes, unless both only delete, or if the winner
  added a row that matches its predicate. A blind append may be ordered after it, except under Serializable.
* A statement whose rows were moved finds them again.
* A file that a statement has emptied is no longer in the table, so its rows cannot be told from copied ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

FILES: Mapping[str, frozenset[int]] = {
    "A": frozenset(range(10)),
    "B": frozenset(range(10, 20)),
    "C": frozenset(range(20, 30)),
}
"""The ids in each file. No row of the table is deleted but GONE."""

GONE = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFootprint:
    """What an operation reads and changes.

    Attributes:
        matches: whether it would change a row with this id; None where it reads no row.
        changes: the ids of the rows that it deletes or updates.
        writes: whether it writes rows, as an UPDATE and a MERGE do.
        may_insert: whether it inserts a row where it finds none.
        inserts: the ids of new rows.
        rewrites: the files whose rows it moves.
    """

    matches: Callable[[int], bool] | None = None
    changes: frozenset[int] = frozenset()
    writes: bool = False
    may_insert: bool = False
    inserts: frozenset[int] = frozenset()
    rewrites: frozenset[str] = field(default=frozenset())

    @property
    def is_blind_append(self) -> bool:
        return bool(self.inserts) and self.matches is None

    @property
    def empties(self) -> frozenset[str]:
        """The files of which no row is left."""
        return frozenset(name for name, ids in FILES.items() if ids - {GONE} <= self.changes)


SAME_ROWS = frozenset({"ConcurrentAppendError", "ConcurrentDeleteDeleteError", "ConcurrentDeleteReadError"})
NEW_ROWS = frozenset({"ConcurrentAppendError"})
SAME_FILES = frozenset({"ConcurrentDeleteDeleteError"})
COMMITS: frozenset[str] = frozenset()


def specified(loser: RowFootprint, winner: RowFootprint, *, serializable: bool) -> frozenset[str]:
    """The errors that the second commit may get; none when it must be committed."""
    if loser.rewrites:
        return SAME_FILES if loser.rewrites & winner.rewrites else COMMITS
    if loser.matches is None or winner.rewrites:
        return COMMITS
    touched = {name for name, ids in FILES.items() if ids & loser.changes}
    if winner.empties & touched:
        return SAME_ROWS
    both = loser.changes & winner.changes
    if both and (loser.writes or loser.may_insert or winner.writes):
        return SAME_ROWS
    if any(map(loser.matches, winner.inserts)) and (serializable or not winner.is_blind_append):
        return NEW_ROWS
    return COMMITS
