"""Finds rows that a rewrite has sorted: by their row ids, which a rewrite keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from delta_core.actions import AddFile
from delta_core.deletion_vectors.roaring import Positions
from delta_core.scan.record_batches import NO_NUMBERS, FileReader, RowsOfFile
from delta_core.scan.row_tracking import ROW_ID, FileRowTracking, RowTrackingReader
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.table_features.row_tracking import RowTracking
from delta_core.transaction.carried_deletions import OldFile

RowIds = npt.NDArray[np.int64]


class RowsById:
    """The row map of a rewrite in a table with row tracking (PROTOCOL.md, "Row Tracking").

    Requests: the ids of the wanted rows are read from the old file, if it has a column for them, and those of
    all rows from the new files of its partition. Memory: eight bytes for each row of one new file.
    """

    def __init__(self, snapshot: Snapshot, tracking: RowTracking, *, access: DataAccess) -> None:
        """Prepare the map of a rewrite of this version, of a table with these hidden columns."""
        self._store = snapshot.store
        self._access = access
        self._reader = FileReader(
            schema=snapshot.schema,
            columns=(),
            partition_columns=snapshot.partition_columns,
            mapping=snapshot.column_mapping,
            row_tracking=RowTrackingReader(tracking, (ROW_ID,)),
            access=access,
        )

    def new_positions(
        self, file: OldFile, positions: Positions, new_files: Sequence[AddFile]
    ) -> Mapping[str, Positions] | None:
        """See `RowMap`."""
        own = file.remove
        numbers = FileRowTracking(
            base_row_id=own.base_row_id, default_row_commit_version=own.default_row_commit_version
        )
        values = own.partition_values or {}
        wanted = self._ids(own.path, values, numbers, only=lambda _: positions)
        found: dict[str, Positions] = {}
        for new in new_files:
            if new.partition_values != values:
                continue
            ids = self._ids(new.path, values, NO_NUMBERS)
            where: Positions = np.flatnonzero(np.isin(ids, wanted))
            if len(where):
                found[new.path] = where
        return found if sum(map(len, found.values())) == len(wanted) else None

    def _ids(
        self,
        path: str,
        partition_values: Mapping[str, str | None],
        numbers: FileRowTracking,
        *,
        only: RowsOfFile | None = None,
    ) -> RowIds:
        place = self._access.locate(path, store=self._store)
        batches: Iterator[RowIds] = (
            batch.column(0).to_numpy()
            for batch in self._reader.read(
                place.store, place.path, partition_values, only=only, numbers=numbers
            )
        )
        return np.concatenate([np.empty(0, np.int64), *batches])
