"""The files that tables above a table have in its directory.

A table may be in a partition directory of another table: other engines create such tables, and so does a
table that is created around an existing one. Then each of the two has files in the directory that the log of
the other does not contain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow.compute as pc

from delta_core.actions.add_cdc_file import CHANGE_DATA_DIRECTORY
from delta_core.clock import Clock
from delta_core.errors import DeltaError, MaintenanceError, StorageError, TableNotFoundError
from delta_core.log.outer_tables import OuterTable
from delta_core.maintenance.vacuum.file_keys import ListedPaths, Rows
from delta_core.maintenance.vacuum.pinned import PinIdentity, Pins
from delta_core.maintenance.vacuum.protected import LoggedRemoves, change_data_to_keep, keys_to_keep
from delta_core.maintenance.vacuum.retention import choose_retention
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.listed_files import Integers
from delta_core.storage.name_columns import name_column
from delta_core.table_features.feature import WriterKind


class NeededByOuterTables:
    """The files of a list that the tables above need, with each outer table's own retention and pins.

    Args:
        tables: the tables above.
        paths: the files, relative to the inner table.
        modified_ms: for each file, its time.
        clock: the source of the current time.
        now_ms: the time from which the retentions are counted, not later than now by the store's clock.
    """

    def __init__(
        self,
        tables: Sequence[OuterTable],
        paths: ListedPaths,
        modified_ms: Integers,
        *,
        clock: Clock,
        now_ms: int,
    ) -> None:
        self._num_files = len(paths)
        self._tables = [_Outer(table, paths, modified_ms, clock=clock, now_ms=now_ms) for table in tables]

    def by_table(self) -> Mapping[str, Rows]:
        """For each outer table that needs some of the files, by its URI: the files that it needs now.

        Requests for each outer table: a snapshot load in the first call and a listing in later calls, a
        listing of its pins, and the requests of `keys_to_keep` for each new version.

        Raises:
            MaintenanceError: the files that an outer table needs cannot be determined.
            StorageError: the store failed.
        """
        needed = {table.uri: table.needed() for table in self._tables}
        return {uri: rows for uri, rows in needed.items() if rows.any()}

    def rows(self) -> Rows:
        """The files that any of the tables needs now. See `by_table`."""
        rows = np.zeros(self._num_files, dtype=np.bool_)
        for needed in self.by_table().values():
            rows |= needed
        return rows


class _Outer:
    """One table above, and the files that its versions need."""

    def __init__(
        self, table: OuterTable, paths: ListedPaths, modified_ms: Integers, *, clock: Clock, now_ms: int
    ) -> None:
        self.uri = table.store.uri
        self._table = table
        prefix, nothing = name_column([f"{table.path}/", ""])
        self._paths = ListedPaths(pc.binary_join_element_wise(prefix, paths.column, nothing))
        self._modified_ms = modified_ms
        self._clock = clock
        self._now_ms = now_ms
        self._pins = Pins()
        self._snapshot: Snapshot | None = None
        # Computed once per version and once per pin.
        self._needed: tuple[tuple[int, str], Rows] | None = None
        self._needed_by_pins: dict[PinIdentity, Rows] = {}

    def needed(self) -> Rows:
        try:
            return self._needed_now()
        except TableNotFoundError:
            return np.zeros(len(self._paths), dtype=np.bool_)
        except StorageError:
            raise
        except DeltaError as error:
            raise MaintenanceError(
                f"The files that the table {self.uri} needs in the directory {self._table.path!r} cannot be "
                "determined.",
                cause=str(error),
                fix="Move the inner table away, or repair the outer table. Then run the vacuum again.",
            ) from error

    def _needed_now(self) -> Rows:
        if self._snapshot is None:
            self._snapshot = Snapshot.load(self._table.store, clock=self._clock)
        else:
            self._snapshot = self._snapshot.refresh()
        latest = self._snapshot
        # An unknown feature may refer to files in a way that is not known here.
        latest.require_writable(writer_kind=WriterKind.VACUUM, operation="determine the files of the table")
        version = latest.version, latest.metadata.id
        if self._needed is None or self._needed[0] != version:
            self._needed = version, self._needed_by(latest)
        rows = self._needed[1].copy()
        for item in self._pins.in_force(latest, store_now_ms=self._now_ms):
            identity = item.pin.identity
            if identity not in self._needed_by_pins:
                self._needed_by_pins[identity] = item.keys.protect(self._paths)
            rows |= self._needed_by_pins[identity]
        return rows

    def _needed_by(self, latest: Snapshot) -> Rows:
        cutoff_ms = choose_retention(latest.properties).cutoff_ms(self._now_ms)
        removes = LoggedRemoves(cutoff_ms=cutoff_ms)
        rows = keys_to_keep(latest, cutoff_ms=cutoff_ms, removes=removes).protect(self._paths)
        if self._table.writes_here:
            # Younger files may belong to a commit that is not yet made.
            rows |= self._modified_ms >= cutoff_ms
        if self._table.path.partition("/")[0] == CHANGE_DATA_DIRECTORY:
            rows |= change_data_to_keep(latest, cutoff_ms=cutoff_ms).protect(self._paths)
        return rows
