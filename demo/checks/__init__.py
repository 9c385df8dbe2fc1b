"""Every expectation of the demonstration, held against the tables and the raw data.

Only what a run's bookkeeping says about itself (its state, its tasks', who approved it) is taken from the
recorded facts; whatever a table can tell is read from the table.
"""

from demo.checks.evidence import Check, Evidence
from demo.checks.skipping import SkippingAnswer, typical_queries
from demo.checks.story import check_all

__all__ = ["Check", "Evidence", "SkippingAnswer", "check_all", "typical_queries"]
