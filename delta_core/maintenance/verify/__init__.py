"""Verification: named checks of a table, of two versions, and of single commits."""

from delta_core.maintenance.verify.checks import verify_table
from delta_core.maintenance.verify.commits import verify_commits
from delta_core.maintenance.verify.report import Check, VerificationReport

__all__ = ["Check", "VerificationReport", "verify_commits", "verify_table"]
