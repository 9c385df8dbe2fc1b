"""Parquet files below Arrow: footers, pages and the Thrift encoding, with limits for hostile files."""
