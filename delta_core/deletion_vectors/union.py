"""The rows that a file has lost already, and those that it loses now (PROTOCOL.md, "Deletion Vectors").

A file has one vector at a time, so the new one names the rows of the old one again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors.encode import row_positions
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.errors import InvalidTableError
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore

_NOTHING: Positions = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeletionVectorUnion:
    """What is deleted of one file after a change.

    Attributes:
        positions: of all deleted rows, ascending.
        newly_deleted: those of them that were live before, ascending.
        num_records: rows of the file, deleted ones included.
    """

    positions: Positions
    newly_deleted: Positions
    num_records: int

    @property
    def is_unchanged(self) -> bool:
        """True when no row is deleted that was not before: then the file needs no new vector."""
        return not len(self.newly_deleted)

    @property
    def deletes_all(self) -> bool:
        """True when the file has no row left: then it is removed, and not added again."""
        return len(self.positions) == self.num_records


def read_union(
    store: LogStore,
    old: DeletionVectorDescriptor | None,
    deleted: npt.ArrayLike,
    *,
    num_records: int,
    access: DataAccess = TABLE_ONLY,
) -> DeletionVectorUnion:
    """A file's vector united with rows that are to be deleted as well. Requests: see `read_deletion_vector`.

    Args:
        store: the table's store.
        old: the vector of the logical file (path and vector) that the rows were found in; None has none.
        deleted: positions in the data file, in any order; such as `old` names may be among them.
        num_records: rows of the data file, deleted ones included.
        access: where besides the table the old vector's file may be.

    Raises:
        MissingDataFileError: the old vector's file is not in the store.
        InvalidTableError: the old vector is damaged, or a row is not in the file.
        PathEscapeError: the old vector's file is outside the table.
        ConfigurationError: `deleted` holds no positions.
    """
    known = _NOTHING if old is None else read_deletion_vector(store, old, num_rows=num_records, access=access)
    return unite(known, deleted, num_records=num_records)


def unite(known: Positions, deleted: npt.ArrayLike, *, num_records: int) -> DeletionVectorUnion:
    """Rows that are deleted and rows that are to be.

    Args:
        known: ascending and distinct, as `read_deletion_vector` gives them.
        deleted: see `row_positions`.
        num_records: rows of the data file.

    Raises:
        InvalidTableError: a row is not in the file, so the number of its rows is wrong.
        ConfigurationError: `deleted` holds no positions.
    """
    wanted = row_positions(deleted)
    for positions in (known, wanted):
        if len(positions) and int(positions[-1]) >= num_records:
            raise InvalidTableError(
                f"Row {int(positions[-1])} cannot be deleted",
                cause=f"The file has {num_records} rows, counted from 0",
                fix="Compare the numRecords in the file's statistics with its footer, and repair them",
            )
    if not len(known):
        return DeletionVectorUnion(positions=wanted, newly_deleted=wanted, num_records=num_records)
    # Both are sorted: a look for each wanted row costs less than sorting all rows again.
    places = np.searchsorted(known, wanted)
    is_new = known[np.minimum(places, len(known) - 1)] != wanted
    fresh = wanted[is_new]
    return DeletionVectorUnion(
        positions=np.insert(known, places[is_new], fresh), newly_deleted=fresh, num_records=num_records
    )
