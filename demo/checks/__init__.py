"""All checks of the demonstration, against the tables and the raw data.

Only the state of a run, the states of its tasks and its approver come from the recorded facts. Everything
that a table contains is read from the table.
"""

from demo.checks.evidence import Check, Evidence
from demo.checks.skipping import SkippingAnswer, typical_queries
from demo.checks.story import check_all

__all__ = ["Check", "Evidence", "SkippingAnswer", "check_all", "typical_queries"]
