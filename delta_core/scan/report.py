"""The effect of pruning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """Files and bytes before and after each kind of pruning."""

    files_total: int
    files_after_partitions: int
    files_after_statistics: int
    bytes_total: int
    bytes_selected: int

    @property
    def files_skipped(self) -> int:
        """Files that need not be opened."""
        return self.files_total - self.files_after_statistics
