"""MERGE: its clauses and their meaning, which every engine shares, and MERGE in Arrow."""
