"""Statements of Delta's and Databricks' SQL reference, by kind, each with what it must do."""

from __future__ import annotations

from tests.support.sql_reference.case import Case
from tests.support.sql_reference.changes import CHANGES
from tests.support.sql_reference.definitions import DEFINITIONS
from tests.support.sql_reference.queries import QUERIES
from tests.support.sql_reference.refused import REFUSED
from tests.support.sql_reference.upkeep import UPKEEP

CASES: tuple[Case, ...] = (*QUERIES, *CHANGES, *DEFINITIONS, *UPKEEP, *REFUSED)
"""All statements."""
