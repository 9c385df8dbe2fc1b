"""delta-spark's Python API: `DeltaTable` and its builders, one file for each."""
