"""Deletion vectors in the log, and unions with those that a store has, for tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors import z85
from delta_core.deletion_vectors.encode import row_positions, serialize_deletion_vector
from delta_core.deletion_vectors.file_update import DeletionVectorUnion, unite
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.storage import LogStore


def read_union(
    store: LogStore, old: DeletionVectorDescriptor | None, deleted: npt.ArrayLike, *, num_records: int
) -> DeletionVectorUnion:
    """The union of the deletion vector `old`, read from the store, with positions of rows to delete."""
    known = np.empty(0, np.int64) if old is None else read_deletion_vector(store, old, num_rows=num_records)
    return unite(known, deleted, num_records=num_records)


def inline_descriptor(positions: npt.ArrayLike) -> DeletionVectorDescriptor:
    """The descriptor of a deletion vector that is stored in the log, for any size."""
    rows = row_positions(positions)
    data = serialize_deletion_vector(rows)
    return DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv=z85.encode(data), size_in_bytes=len(data), cardinality=len(rows)
    )
