"""Shared code of the operations that rewrite data files without changing rows."""
