"""Row tracking for a table that has rows already: every live file gets its numbers, then it is turned on."""

from delta_core.maintenance.backfill.apply import BackfillResult, enable_row_tracking
from delta_core.maintenance.backfill.files import is_unnumbered, unnumbered_files

__all__ = ["BackfillResult", "enable_row_tracking", "is_unnumbered", "unnumbered_files"]
