"""The Variant type of Parquet: its binary encoding, and values that files keep in several columns."""
