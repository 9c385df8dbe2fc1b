"""Snapshots: a table at one version. Also the table's history."""
