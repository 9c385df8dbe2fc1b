"""Some rows of a data file, chosen by deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChoice:
    """The listed rows of a data file, or all of its other rows.

    The listed rows are those of the deletion vector `listed`, without those of `unlisted`.

    Attributes:
        listed: None lists no row.
        unlisted: None leaves the rows of `listed` as they are.
        keeps_listed: True chooses the listed rows, False all others.
    """

    listed: DeletionVectorDescriptor | None = None
    unlisted: DeletionVectorDescriptor | None = None
    keeps_listed: bool = False

    @classmethod
    def left_by(cls, deletion_vector: DeletionVectorDescriptor | None) -> RowChoice:
        """The rows that are not deleted."""
        return cls(listed=deletion_vector)

    @property
    def chooses_all(self) -> bool:
        """True when every row of the file is chosen, so that no deletion vector is read."""
        return self.listed is None and not self.keeps_listed

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RowChoice:
        """The choice that `to_document` returned as plain values."""
        listed, unlisted = (
            None if document[name] is None else DeletionVectorDescriptor(**document[name])
            for name in ("listed", "unlisted")
        )
        return cls(listed=listed, unlisted=unlisted, keeps_listed=document["keeps_listed"])

    def to_document(self) -> dict[str, Any]:
        """The choice as values for JSON, such as in a task."""
        return asdict(self)

    def positions(self, store: LogStore, *, num_rows: int, access: DataAccess = TABLE_ONLY) -> Positions:
        """The positions of the listed rows, ascending. Arguments and errors as `read_deletion_vector`."""
        parts = [
            np.empty(0, np.int64)
            if descriptor is None
            else read_deletion_vector(store, descriptor, num_rows=num_rows, access=access)
            for descriptor in (self.listed, self.unlisted)
        ]
        return np.setdiff1d(parts[0], parts[1], assume_unique=True) if len(parts[1]) else parts[0]


ALL_ROWS = RowChoice()
"""Every row of the file."""
