"""Scans: the files that a query needs, and the rows in them.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.scan.add_actions import add_actions_table as add_actions_table
    from delta_core.scan.appended import appended_batches as appended_batches
    from delta_core.scan.appended import appended_files as appended_files
    from delta_core.scan.appended import changed_partitions as changed_partitions
    from delta_core.scan.arrow_dataset import arrow_dataset as arrow_dataset
    from delta_core.scan.change_data import ChangeDataScan as ChangeDataScan
    from delta_core.scan.row_count import count_rows as count_rows
    from delta_core.scan.row_count import live_partitions as live_partitions
    from delta_core.scan.row_tracking import ROW_TRACKING_COLUMNS as ROW_TRACKING_COLUMNS
    from delta_core.scan.scan import Scan as Scan
    from delta_core.scan.scan import ScanReport as ScanReport
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "ChangeDataScan": "delta_core.scan.change_data",
            "ROW_TRACKING_COLUMNS": "delta_core.scan.row_tracking",
            "Scan": "delta_core.scan.scan",
            "ScanReport": "delta_core.scan.scan",
            "add_actions_table": "delta_core.scan.add_actions",
            "appended_batches": "delta_core.scan.appended",
            "appended_files": "delta_core.scan.appended",
            "arrow_dataset": "delta_core.scan.arrow_dataset",
            "changed_partitions": "delta_core.scan.appended",
            "count_rows": "delta_core.scan.row_count",
            "live_partitions": "delta_core.scan.row_count",
        },
    )
