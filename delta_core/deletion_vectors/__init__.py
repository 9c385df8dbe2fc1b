"""Deletion vectors: the deleted rows of a data file (PROTOCOL.md, "Deletion Vectors")."""
