"""The Parquet form of a checkpoint's rows (PROTOCOL.md, "Checkpoint Schema"): one action a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.actions.arrow_schema import STRING_MAP
from delta_core.actions.json_codec import action_to_json

_STRINGS = pa.list_(pa.field("element", pa.string()))

_DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)

ADD_TYPE = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", STRING_MAP),
        ("deletionVector", _DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
    ]
)
REMOVE_TYPE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("deletionVector", _DELETION_VECTOR),
    ]
)

CHECKPOINT_SCHEMA = pa.schema(
    [
        (
            "txn",
            pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
        ),
        ("add", ADD_TYPE),
        ("remove", REMOVE_TYPE),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", STRING_MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", _STRINGS),
                    ("configuration", STRING_MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", _STRINGS),
                    ("writerFeatures", _STRINGS),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
    ]
)

_LIVE_SOURCES = {
    "path": "path",
    "partitionValues": "partition_values",
    "size": "size_bytes",
    "modificationTime": "modification_time_ms",
    "stats": "stats",
    "tags": "tags",
    "deletionVector": "deletion_vector",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "default_row_commit_version",
    "clusteringProvider": "clustering_provider",
}
_TOMBSTONE_SOURCES = {
    "path": "path",
    "deletionTimestamp": "deletion_timestamp_ms",
    "extendedFileMetadata": "extended_file_metadata",
    "partitionValues": "partition_values",
    "size": "size_bytes",
    "deletionVector": "deletion_vector",
}


def action_rows(actions: Iterable[Protocol | Metadata | SetTransaction | DomainMetadata]) -> pa.RecordBatch:
    """The actions that are not files, as checkpoint rows."""
    rows = [action_to_json(action) for action in actions]
    columns = [
        pa.array([_pairs(row.get(item.name)) for row in rows], item.type)
        if item.name not in ("add", "remove")
        else pa.nulls(len(rows), item.type)
        for item in CHECKPOINT_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CHECKPOINT_SCHEMA)


def add_rows(files: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of LIVE_FILE_SCHEMA as checkpoint rows; `dataChange` is false, nothing is new in them."""
    return _file_rows("add", ADD_TYPE, files, _LIVE_SOURCES)


def remove_rows(tombstones: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of TOMBSTONE_SCHEMA as checkpoint rows."""
    return _file_rows("remove", REMOVE_TYPE, tombstones, _TOMBSTONE_SOURCES)


def _file_rows(
    kind: str, wanted: pa.StructType, batch: pa.RecordBatch, sources: Mapping[str, str]
) -> pa.RecordBatch:
    children = []
    for index in range(wanted.num_fields):
        item = wanted.field(index)
        if item.name == "dataChange":
            children.append(pa.repeat(pa.scalar(False), batch.num_rows))
            continue
        values = batch.column(sources[item.name])
        children.append(_renamed_vectors(values) if item.type == _DELETION_VECTOR else values)
    own = pa.StructArray.from_arrays(children, fields=list(wanted))
    columns = [
        own if item.name == kind else pa.nulls(batch.num_rows, item.type) for item in CHECKPOINT_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CHECKPOINT_SCHEMA)


def _renamed_vectors(values: pa.StructArray) -> pa.StructArray:
    children = [pc.struct_field(values, index) for index in range(values.type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(_DELETION_VECTOR), mask=pc.is_null(values))


def _pairs(value: Any) -> Any:
    """Arrow builds maps from pairs; these are the only mappings that are maps and not structs."""
    if not isinstance(value, dict):
        return value
    return {
        key: list(item.items())
        if key in ("configuration", "options") and isinstance(item, dict)
        else _pairs(item)
        for key, item in value.items()
    }
