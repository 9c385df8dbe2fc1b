"""Changing a table's rows: append, overwrite, replaceWhere."""
