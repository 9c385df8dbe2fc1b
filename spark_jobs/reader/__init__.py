"""Reading a snapshot: Python resolves the version and prunes files, and Spark's Parquet reader scans them."""
