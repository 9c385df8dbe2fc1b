"""Enabling row tracking on a table that has rows: every live file gets row ids, then the property is set."""

from delta_core.maintenance.backfill.apply import BackfillResult, enable_row_tracking
from delta_core.maintenance.backfill.files import files_without_row_ids, lacks_row_ids

__all__ = ["BackfillResult", "enable_row_tracking", "files_without_row_ids", "lacks_row_ids"]
