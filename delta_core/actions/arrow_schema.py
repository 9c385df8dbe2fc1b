"""The Arrow schemas of live files and tombstones, shared by replay, scan, checkpoint and plans."""

from __future__ import annotations

import pyarrow as pa

STRING_MAP = pa.map_(pa.string(), pa.string())

DELETION_VECTOR_TYPE = pa.struct(
    [
        pa.field("storage_type", pa.string()),
        pa.field("path_or_inline_dv", pa.string()),
        pa.field("offset", pa.int32()),
        pa.field("size_in_bytes", pa.int32()),
        pa.field("cardinality", pa.int64()),
    ]
)

LIVE_FILE_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("partition_values", STRING_MAP),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("modification_time_ms", pa.int64(), nullable=False),
        pa.field("stats", pa.string()),
        pa.field("tags", STRING_MAP),
        pa.field("deletion_vector", DELETION_VECTOR_TYPE),
        pa.field("base_row_id", pa.int64()),
        pa.field("default_row_commit_version", pa.int64()),
        pa.field("clustering_provider", pa.string()),
    ]
)
"""Live files. `path` is URL-encoded, as stored in the log. Partition values are serialised strings."""

TOMBSTONE_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("deletion_timestamp_ms", pa.int64()),
        pa.field("partition_values", STRING_MAP),
        pa.field("size_bytes", pa.int64()),
        pa.field("deletion_vector", DELETION_VECTOR_TYPE),
        pa.field("extended_file_metadata", pa.bool_()),
        pa.field("base_row_id", pa.int64()),
        pa.field("default_row_commit_version", pa.int64()),
    ]
)
"""`remove` actions within the retention."""
