"""Kind `describe`: identity, schema, protocol, properties and size of a table."""

from __future__ import annotations

import json
from typing import Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Identity, schema, protocol, properties and size of the newest version."""
    snapshot = context.require_snapshot()
    protocol, metadata = snapshot.protocol, snapshot.metadata
    return context.succeeded(
        spec,
        output={
            "uri": snapshot.store.uri,
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "version": snapshot.version,
            "timestamp_ms": snapshot.timestamp_ms,
            "created_time_ms": metadata.created_time_ms,
            "partition_columns": list(metadata.partition_columns),
            "properties": dict(metadata.configuration),
            "min_reader_version": protocol.min_reader_version,
            "min_writer_version": protocol.min_writer_version,
            "reader_features": sorted(protocol.reader_features or ()),
            "writer_features": sorted(protocol.writer_features or ()),
            "num_files": snapshot.files.num_files,
            "size_bytes": snapshot.files.total_bytes,
            "schema": json.loads(metadata.schema_string),
        },
    )


DESCRIBE: Final = JobKind(
    name="describe", run=run, help="Show the table's schema, properties and size.", commits=False
)
