"""Verification: named checks of a table, and of two versions that must hold the same rows."""

from delta_core.maintenance.verify.checks import Check, VerificationReport, verify_table

__all__ = ["Check", "VerificationReport", "verify_table"]
