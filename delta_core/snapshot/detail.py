"""The details of a table in one mapping, similar to `DESCRIBE DETAIL`."""

from __future__ import annotations

from typing import Any

from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of


def table_detail(snapshot: Snapshot) -> dict[str, Any]:
    """The details of a table as a JSON-serialisable mapping. Loads the live files to count them."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    clustering = clustering_of(snapshot)
    clustered_by = [] if clustering is None else clustering.names(snapshot.schema)
    return {
        "uri": snapshot.store.uri,
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "version": snapshot.version,
        "last_modified_ms": snapshot.timestamp_ms,
        "created_time_ms": metadata.created_time_ms,
        "partition_columns": list(snapshot.partition_columns),
        "clustering_columns": clustered_by,
        "num_files": snapshot.files.num_files,
        "size_bytes": snapshot.files.total_bytes,
        "configuration": dict(metadata.configuration),
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "reader_features": sorted(protocol.reader_features or ()),
        "writer_features": sorted(protocol.writer_features or ()),
    }
