"""Replay of the commits after a checkpoint (PROTOCOL.md, "Action Reconciliation").

Only these few actions are Python objects. The checkpoint's files that they affect are found with Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.actions.arrow_schema import DELETION_VECTOR_TYPE, LIVE_FILE_SCHEMA, TOMBSTONE_SCHEMA
from delta_core.actions.json_codec import action_from_json, metadata_from_json, protocol_from_json
from delta_core.actions.validation import dv_unique_id
from delta_core.log.commit_reader import CommitData
from delta_core.schema.arrow_values import arrow_array
from delta_core.storage.uri import canonical_log_path

FileKey = tuple[str, str]
"""Identity of a logical file: canonical path, and the unique id of its deletion vector or ``""``."""

Fields = Mapping[str, Any]

LIVE_JSON_KEYS = {
    "path": "path",
    "partition_values": "partitionValues",
    "size_bytes": "size",
    "modification_time_ms": "modificationTime",
    "stats": "stats",
    "tags": "tags",
    "deletion_vector": "deletionVector",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "clustering_provider": "clusteringProvider",
}
"""The log's names for the columns of LIVE_FILE_SCHEMA."""

_TOMBSTONE_JSON_KEYS = {
    "path": "path",
    "deletion_timestamp_ms": "deletionTimestamp",
    "partition_values": "partitionValues",
    "size_bytes": "size",
    "deletion_vector": "deletionVector",
    "extended_file_metadata": "extendedFileMetadata",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
}
_DELETION_VECTOR_KEYS = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")


@dataclass(slots=True, kw_only=True)
class Tail:
    """The reconciled actions of consecutive commits.

    Attributes:
        adds: live files that the commits added, as JSON fields.
        removes: files that the commits removed and did not add again, as JSON fields.
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domain_metadata: dict[str, DomainMetadata] = field(default_factory=dict)
    adds: dict[FileKey, Fields] = field(default_factory=dict)
    removes: dict[FileKey, Fields] = field(default_factory=dict)


def replay_tail(commits: Iterable[CommitData]) -> Tail:
    """Reconcile commits, oldest first.

    Raises:
        CorruptLogError: a commit is damaged or contradicts itself.
    """
    tail = Tail()
    for commit in commits:
        for _, kind, fields in commit.actions():
            if kind == "add":
                key = file_key(fields)
                tail.removes.pop(key, None)
                tail.adds[key] = fields
            elif kind == "remove":
                key = file_key(fields)
                tail.adds.pop(key, None)
                tail.removes[key] = fields
            elif kind == "metaData":
                tail.metadata = metadata_from_json(fields)
            elif kind == "protocol":
                tail.protocol = protocol_from_json(fields)
            elif kind in ("txn", "domainMetadata"):
                action = action_from_json(kind, fields)
                if isinstance(action, SetTransaction):
                    tail.transactions[action.app_id] = action
                elif isinstance(action, DomainMetadata):
                    tail.domain_metadata[action.domain] = action
    return tail


def file_key(fields: Fields) -> FileKey:
    """The identity of the logical file of an `add` or `remove`, from its JSON fields."""
    return canonical_log_path(fields["path"]), dv_unique_id(fields.get("deletionVector")) or ""


def live_batch(adds: Iterable[Fields]) -> pa.RecordBatch:
    """Live files as one batch of LIVE_FILE_SCHEMA."""
    return _batch(list(adds), LIVE_FILE_SCHEMA, LIVE_JSON_KEYS)


def tombstone_batch(removes: Iterable[Fields]) -> pa.RecordBatch:
    """Removed files as one batch of TOMBSTONE_SCHEMA."""
    return _batch(list(removes), TOMBSTONE_SCHEMA, _TOMBSTONE_JSON_KEYS)


def _batch(rows: list[Fields], schema: pa.Schema, keys: Mapping[str, str]) -> pa.RecordBatch:
    columns = [_column([row.get(keys[item.name]) for row in rows], item.type) for item in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], data_type: pa.DataType) -> pa.Array:
    if data_type == DELETION_VECTOR_TYPE:
        names = [data_type.field(index).name for index in range(data_type.num_fields)]
        values = [
            None
            if value is None
            else {name: value.get(key) for name, key in zip(names, _DELETION_VECTOR_KEYS, strict=True)}
            for value in values
        ]
    return arrow_array(values, data_type)
