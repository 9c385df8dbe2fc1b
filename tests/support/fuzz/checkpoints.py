"""Checkpoints written line by line, past the library under test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.fuzz.slow_reader import Line

_MAP = pa.map_(pa.string(), pa.string())
_DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_STATS = pa.struct(
    [
        ("numRecords", pa.int64()),
        ("minValues", pa.struct([("id", pa.int64())])),
        ("maxValues", pa.struct([("id", pa.int64())])),
        ("nullCount", pa.struct([("id", pa.int64())])),
    ]
)
_ADD = [
    ("path", pa.string()),
    ("partitionValues", _MAP),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("stats", pa.string()),
    ("tags", _MAP),
    ("deletionVector", _DELETION_VECTOR),
]
_REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
        ("deletionVector", _DELETION_VECTOR),
    ]
)
_REST = {
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _MAP),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}
_MANIFEST = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _MAP)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
    ),
}
_UUID = "80a083e8-7026-4e79-81be-64bd76c43a1"


def write_parquet(
    path: Path,
    lines: list[Line],
    *,
    struct_statistics: bool = False,
    rows_per_group: int = 1 << 20,
    compression: str = "zstd",
    manifest: bool = False,
) -> None:
    """One Parquet file with an action a row."""
    add = [*_ADD, *([("stats_parsed", _STATS)] if struct_statistics else [])]
    kinds: dict[str, Any] = {"add": pa.struct(add), "remove": _REMOVE, **_REST}
    if manifest:
        kinds |= _MANIFEST
    if all("add" in line or "remove" in line for line in lines):
        kinds = {kind: kinds[kind] for kind in ("add", "remove")}
    rows = [{kind: _row(kind, fields, struct_statistics) for kind, fields in line.items()} for line in lines]
    columns = [pa.array([_paired(row.get(kind)) for row in rows], kinds[kind]) for kind in kinds]
    path.parent.mkdir(exist_ok=True)
    pq.write_table(
        pa.table(columns, names=list(kinds)),
        path,
        row_group_size=rows_per_group,
        compression=compression,
        store_schema=False,
    )


def write_json_manifest(log: Path, version: int, lines: list[Line], *, sidecars: int) -> None:
    """A V2 checkpoint whose manifest is JSON."""
    content = _manifest(log, version, lines, sidecars)
    data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in content)
    (log / f"{version:020d}.checkpoint.{_UUID}0.json").write_bytes(data)


def write_parquet_manifest(log: Path, version: int, lines: list[Line], *, sidecars: int) -> None:
    """A V2 checkpoint whose manifest is Parquet."""
    content = _manifest(log, version, lines, sidecars)
    write_parquet(log / f"{version:020d}.checkpoint.{_UUID}0.parquet", content, manifest=True)


def _manifest(log: Path, version: int, lines: list[Line], sidecars: int) -> list[Line]:
    found: list[Line] = [{"checkpointMetadata": {"version": version}}]
    found += [line for line in lines if not {"add", "remove"} & line.keys()]
    files = [line for line in lines if {"add", "remove"} & line.keys()]
    for number in range(sidecars):
        path = log / "_sidecars" / f"{_UUID}{number + 1}.parquet"
        write_parquet(path, files[number::sidecars])
        fields = {"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 1}
        found.append({"sidecar": fields})
    return found


def _row(kind: str, fields: Any, struct_statistics: bool) -> Any:
    if kind == "add" and struct_statistics:
        return {**fields, "stats_parsed": json.loads(fields["stats"])}
    return fields


def _paired(value: Any, name: str = "") -> Any:
    """Arrow builds maps from pairs."""
    if not isinstance(value, dict):
        return value
    if name in ("partitionValues", "tags", "configuration", "options"):
        return list(value.items())
    return {key: _paired(item, key) for key, item in value.items()}
