"""delta-spark's own Python tests, run with `spark_jobs` in the place of delta-spark."""
