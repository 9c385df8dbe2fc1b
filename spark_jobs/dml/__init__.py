"""MERGE, DELETE and UPDATE on Spark, with Spark's native expressions."""
