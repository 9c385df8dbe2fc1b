"""Reading a snapshot: resolved and pruned in Python, scanned by Spark's own Parquet reader."""
