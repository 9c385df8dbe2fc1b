"""MERGE on Spark: copy-on-write, with Spark's native expressions."""
