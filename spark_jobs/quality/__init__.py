"""The quality gate of loads: stage the files, validate them, and only then publish or refuse.

Great Expectations and pandas are imported inside functions, by a job that has a suite to check.
"""
