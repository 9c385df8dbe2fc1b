"""Suites that others can run against what they add to deltaward."""
