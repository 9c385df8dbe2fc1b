"""All faults that have a name."""

from __future__ import annotations

from tests.faults import of_commit, of_programs, of_stores, of_tables

FAULTS = {
    fault.name: fault
    for group in (of_commit.FAULTS, of_tables.FAULTS, of_stores.FAULTS, of_programs.FAULTS)
    for fault in group
}
"""By name."""
