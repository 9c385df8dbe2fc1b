"""The union of a file's deletion vector with newly deleted rows (PROTOCOL.md, "Deletion Vectors").

A file has one deletion vector at a time, so the new one must contain the rows of the old one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from delta_core.deletion_vectors.encode import row_positions
from delta_core.deletion_vectors.roaring import Positions
from delta_core.errors import InvalidTableError

_NOTHING: Positions = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeletionVectorUnion:
    """The deleted rows of one file after a change.

    Attributes:
        positions: the positions of all deleted rows, ascending.
        newly_deleted: the positions of deleted rows that were live before, ascending.
        num_records: the number of rows of the data file, including deleted rows.
    """

    positions: Positions
    newly_deleted: Positions
    num_records: int

    @property
    def is_unchanged(self) -> bool:
        """True when no live row is deleted, so the file needs no new deletion vector."""
        return not len(self.newly_deleted)

    @property
    def deletes_all(self) -> bool:
        """True when the file has no live row left, so it is removed and not added again."""
        return len(self.positions) == self.num_records


def unite(known: Positions, deleted: npt.ArrayLike, *, num_records: int) -> DeletionVectorUnion:
    """The union of rows that are deleted already and rows to delete.

    Args:
        known: the deleted rows, ascending and distinct, as `read_deletion_vector` returns them.
        deleted: the rows to delete; see `row_positions`.
        num_records: the number of rows of the data file.

    Raises:
        InvalidTableError: a row is not in the file, so the recorded number of rows is wrong.
        ConfigurationError: `deleted` does not contain valid positions.
    """
    added = row_positions(deleted)
    for positions in (known, added):
        if len(positions) and int(positions[-1]) >= num_records:
            raise InvalidTableError(
                f"Row {int(positions[-1])} of a data file cannot be deleted.",
                cause=f"The file has {num_records} rows, counted from 0.",
                fix="Compare numRecords in the file's statistics with its footer, and repair the statistics.",
            )
    if not len(known):
        return DeletionVectorUnion(positions=added, newly_deleted=added, num_records=num_records)
    # Both are sorted: a search for each added row costs less than sorting all rows again.
    places = np.searchsorted(known, added)
    is_new = known[np.minimum(places, len(known) - 1)] != added
    newly_deleted = added[is_new]
    return DeletionVectorUnion(
        positions=np.insert(known, places[is_new], newly_deleted),
        newly_deleted=newly_deleted,
        num_records=num_records,
    )
