"""Deletion vectors: which rows of a data file are deleted (PROTOCOL.md, "Deletion Vectors")."""
