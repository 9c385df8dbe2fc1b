"""The row map for a rewrite that need not keep the order of rows."""

from __future__ import annotations

from delta_core.data.write_plan import write_plan_of
from delta_core.dml.rows_by_id import RowsById
from delta_core.dml.rows_by_value import RowsByValue
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.transaction.row_map import RowMap


def rows_of_any_order(snapshot: Snapshot, *, access: DataAccess) -> RowMap:
    """A row map by row ids in a table with row tracking, otherwise by the values of rows. No request."""
    tracking = write_plan_of(snapshot).row_tracking
    if tracking is None:
        return RowsByValue(snapshot, access=access)
    return RowsById(snapshot, tracking, access=access)
