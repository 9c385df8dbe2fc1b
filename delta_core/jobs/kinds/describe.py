"""Kind `describe`: identity, schema, protocol, properties, size and pins of a table."""

from __future__ import annotations

import json
from typing import Any, Final

from delta_core.errors import LeaseFileError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.leases.pins import pins_in_force
from delta_core.snapshot.snapshot import Snapshot


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Identity, schema, protocol, properties and size of the newest version, and the pins of the table."""
    snapshot = context.require_snapshot()
    protocol, metadata = snapshot.protocol, snapshot.metadata
    pins, warnings = _pins(snapshot)
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
            "pins": pins,
            "schema": json.loads(metadata.schema_string),
        },
        warnings=warnings,
    )


def _pins(snapshot: Snapshot) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The pins of readers and streams, and what is wrong with them. One listing, and one request for each."""
    try:
        found = pins_in_force(snapshot.store, store_now_ms=snapshot.clock.now_ms())
    except LeaseFileError as error:
        return [], (str(error),)
    return [
        {
            "holder": pin.holder,
            "version": pin.version,
            "following": pin.following,
            "expires_ms": pin.expires_ms,
            "path": pin.path,
        }
        for pin in found
    ], ()


DESCRIBE: Final = JobKind(
    name="describe", run=run, help="Show the table's schema, properties, size and pins.", commits=False
)
