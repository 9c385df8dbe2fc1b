"""Parquet's Variant type: its binary encoding, and shredded variants in several columns."""
