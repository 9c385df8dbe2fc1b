"""Data files: reading, writing, their statistics, and the constraints their rows must meet."""
