"""Data files: writing, statistics, and the constraints of their rows."""
