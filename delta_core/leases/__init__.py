"""Leases on a table, and pins that keep a version readable."""
