"""Columnar reconciliation of log actions into a table's state."""
