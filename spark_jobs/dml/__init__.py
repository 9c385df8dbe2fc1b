"""Changing rows of a table: MERGE, copy-on-write, by Spark's native expressions."""
