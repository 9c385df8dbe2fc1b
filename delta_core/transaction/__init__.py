"""Optimistic transactions: stage actions and a read set, then commit as exactly one table version."""
