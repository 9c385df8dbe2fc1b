"""The Parquet form of a checkpoint's rows (PROTOCOL.md, "Checkpoint Schema"): one action a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.actions.arrow_schema import STRING_MAP
from delta_core.actions.json_codec import action_to_json

PARSED_STATISTICS = "stats_parsed"
PARSED_PARTITION_VALUES = "partitionValues_parsed"
"""The log's names for statistics and partition values in the types of their columns.

Arrow batches of files use the same names.
"""

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
        # A restored file keeps its row ids (PROTOCOL.md, "Writer Requirements for Row Tracking").
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
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

MANIFEST_SCHEMA_FIELDS = (
    pa.field("checkpointMetadata", pa.struct([("version", pa.int64()), ("tags", STRING_MAP)])),
    pa.field(
        "sidecar",
        pa.struct(
            [
                ("path", pa.string()),
                ("sizeInBytes", pa.int64()),
                ("modificationTime", pa.int64()),
                ("tags", STRING_MAP),
            ]
        ),
    ),
)
"""The additional columns of a checkpoint of the V2 spec (PROTOCOL.md, "V2 Spec")."""

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
    PARSED_STATISTICS: PARSED_STATISTICS,
    PARSED_PARTITION_VALUES: PARSED_PARTITION_VALUES,
}
_TOMBSTONE_SOURCES = {
    "path": "path",
    "deletionTimestamp": "deletion_timestamp_ms",
    "extendedFileMetadata": "extended_file_metadata",
    "partitionValues": "partition_values",
    "size": "size_bytes",
    "deletionVector": "deletion_vector",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "default_row_commit_version",
}


def checkpoint_schema(
    *,
    with_json_statistics: bool = True,
    statistics: pa.StructType | None = None,
    partition_values: pa.StructType | None = None,
) -> pa.Schema:
    """The schema of a table's checkpoints (PROTOCOL.md, "Checkpoints").

    Args:
        with_json_statistics: whether `add` has the column `stats`.
        statistics: the type of `stats_parsed`; None omits the column.
        partition_values: the type of `partitionValues_parsed`; None omits the column.
    """
    fields = [item for item in ADD_TYPE if with_json_statistics or item.name != "stats"]
    for name, kind in ((PARSED_PARTITION_VALUES, partition_values), (PARSED_STATISTICS, statistics)):
        if kind is not None:
            fields.append(pa.field(name, kind))
    index = CHECKPOINT_SCHEMA.get_field_index("add")
    return CHECKPOINT_SCHEMA.set(index, pa.field("add", pa.struct(fields)))


def action_rows(
    actions: Iterable[Protocol | Metadata | SetTransaction | DomainMetadata],
    schema: pa.Schema = CHECKPOINT_SCHEMA,
) -> pa.RecordBatch:
    """Actions other than file actions, as rows of a `checkpoint_schema`."""
    return json_rows([action_to_json(action) for action in actions], schema)


def json_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Actions other than file actions, as rows of a checkpoint. Each row is the JSON object of its line."""
    columns = [
        pa.array([_pairs(row.get(item.name)) for row in rows], item.type)
        if item.name not in ("add", "remove")
        else pa.nulls(len(rows), item.type)
        for item in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def add_rows(files: pa.RecordBatch, schema: pa.Schema = CHECKPOINT_SCHEMA) -> pa.RecordBatch:
    """Live files as rows of a `checkpoint_schema`. `dataChange` is false.

    Args:
        files: the columns of LIVE_FILE_SCHEMA, and the columns of parsed values that `schema` has.
        schema: the schema of the rows.
    """
    return _file_rows("add", files, _LIVE_SOURCES, schema)


def remove_rows(tombstones: pa.RecordBatch, schema: pa.Schema = CHECKPOINT_SCHEMA) -> pa.RecordBatch:
    """A batch of TOMBSTONE_SCHEMA as rows of a `checkpoint_schema`."""
    return _file_rows("remove", tombstones, _TOMBSTONE_SOURCES, schema)


def _file_rows(
    kind: str, batch: pa.RecordBatch, sources: Mapping[str, str], schema: pa.Schema
) -> pa.RecordBatch:
    action_type = schema.field(kind).type
    children = []
    for index in range(action_type.num_fields):
        item = action_type.field(index)
        if item.name == "dataChange":
            children.append(pa.repeat(pa.scalar(False), batch.num_rows))
            continue
        values = batch.column(sources[item.name])
        children.append(_renamed_deletion_vectors(values) if item.type == _DELETION_VECTOR else values)
    rows = pa.StructArray.from_arrays(children, fields=list(action_type))
    columns = [rows if item.name == kind else pa.nulls(batch.num_rows, item.type) for item in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _renamed_deletion_vectors(values: pa.StructArray) -> pa.StructArray:
    children = [pc.struct_field(values, index) for index in range(values.type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(_DELETION_VECTOR), mask=pc.is_null(values))


def _pairs(value: Any) -> Any:
    """The value with each map as a list of pairs, from which Arrow builds maps; structs stay mappings."""
    if not isinstance(value, dict):
        return value
    return {
        key: list(item.items())
        if key in ("configuration", "options", "tags") and isinstance(item, dict)
        else _pairs(item)
        for key, item in value.items()
    }
