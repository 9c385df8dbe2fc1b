"""Data files: reading, writing, statistics, and the constraints of their rows."""
