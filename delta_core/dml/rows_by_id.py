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
from delta_core.transaction.row_map import OldRows, by_partition

RowIds = npt.NDArray[np.int64]


class RowsById:
    """The row map of a rewrite in a table with row tracking (PROTOCOL.md, "Row Tracking").

    Requests: the ids of the wanted rows are read from the old files, if these have a column for them, and
    those of all rows from the new files of their partitions. Memory: eight bytes for each row of a new file.
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
        self, rows: Sequence[OldRows], new_files: Sequence[AddFile]
    ) -> Mapping[str, Positions] | None:
        """See `RowMap`."""
        found: dict[str, Positions] = {}
        for group in by_partition(rows, new_files):
            wanted = np.concatenate([self._ids_of(old) for old in group.rows])
            left = len(wanted)
            for new in group.new_files:
                ids = self._ids(new.path, group.partition_values, NO_NUMBERS)
                where: Positions = np.flatnonzero(np.isin(ids, wanted))
                if len(where):
                    found[new.path] = where
                    left -= len(where)
            if left:
                return None
        return found

    def _ids_of(self, old: OldRows) -> RowIds:
        own = old.file.remove
        numbers = FileRowTracking(
            base_row_id=own.base_row_id, default_row_commit_version=own.default_row_commit_version
        )
        return self._ids(own.path, own.partition_values or {}, numbers, only=lambda _: old.positions)

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
