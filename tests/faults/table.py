"""All faults that have a name."""

from __future__ import annotations

from tests.faults import of_commit, of_programs, of_stores, of_tables

_ALL = [*of_commit.FAULTS, *of_tables.FAULTS, *of_stores.FAULTS, *of_programs.FAULTS]

FAULTS = {fault.name: fault for fault in _ALL}
"""By name."""

assert len(FAULTS) == len(_ALL), "two faults have one name"
