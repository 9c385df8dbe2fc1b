"""Converts live files, which are Arrow columns, into the actions of a commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pyarrow as pa

from delta_core.actions import AddFile, DeletionVectorDescriptor, RemoveFile


def remove_actions(
    files: pa.Table, *, deletion_timestamp_ms: int, data_change: bool = True
) -> Iterator[RemoveFile]:
    """A `remove` for each live file, with its size, partition values and deletion vector.

    Args:
        files: rows of LIVE_FILE_SCHEMA; statistics are not needed.
        deletion_timestamp_ms: the time of removal, in milliseconds since the epoch.
        data_change: False when the same rows are added again elsewhere in the commit.
    """
    columns = [name for name in files.schema.names if name != "stats"]
    for batch in files.select(columns).to_batches(max_chunksize=8192):
        for row in batch.to_pylist():
            yield RemoveFile(
                path=row["path"],
                deletion_timestamp_ms=deletion_timestamp_ms,
                data_change=data_change,
                extended_file_metadata=True,
                partition_values=dict(row.get("partition_values") or ()),
                size_bytes=row.get("size_bytes"),
                tags=_tags(row),
                deletion_vector=_deletion_vector(row),
                base_row_id=row.get("base_row_id"),
                default_row_commit_version=row.get("default_row_commit_version"),
            )


def add_actions(files: pa.Table, *, data_change: bool) -> Iterator[AddFile]:
    """An `add` for each row of LIVE_FILE_SCHEMA."""
    for batch in files.to_batches(max_chunksize=8192):
        for row in batch.to_pylist():
            yield AddFile(
                path=row["path"],
                partition_values=dict(row.get("partition_values") or ()),
                size_bytes=row["size_bytes"],
                modification_time_ms=row["modification_time_ms"],
                data_change=data_change,
                stats=row.get("stats"),
                tags=_tags(row),
                deletion_vector=_deletion_vector(row),
                base_row_id=row.get("base_row_id"),
                default_row_commit_version=row.get("default_row_commit_version"),
                clustering_provider=row.get("clustering_provider"),
            )


def num_records(add: AddFile) -> int | None:
    """The row count in a file's statistics without the deleted rows; None when not recorded."""
    if add.stats is None:
        return None
    try:
        count = orjson.loads(add.stats).get("numRecords")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    if not isinstance(count, int):
        return None
    return count - (add.deletion_vector.cardinality if add.deletion_vector else 0)


def _tags(row: Mapping[str, Any]) -> dict[str, str | None] | None:
    tags = row.get("tags")
    return dict(tags) if tags is not None else None


def _deletion_vector(row: Mapping[str, Any]) -> DeletionVectorDescriptor | None:
    dv = row.get("deletion_vector")
    if dv is None or dv["storage_type"] is None:
        return None
    return DeletionVectorDescriptor(**dv)
