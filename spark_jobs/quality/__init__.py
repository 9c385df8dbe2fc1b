"""The quality gate of loads: stage the files, validate them, and only then publish or refuse.

Great Expectations and pandas are imported inside functions, only by a job with a suite.
"""
