"""A log of ten million files, made of one of a million: ten sidecars of a V2 checkpoint, ten commits."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

COPIES = 10
_FEATURE = "v2Checkpoint"


def large_log(cache: Path, kind: str, million: Path) -> Path:
    """The table, made once and kept in the cache. Each sidecar holds the million's files by other names."""
    table = cache / f"snapshot-{kind}-{COPIES}m"
    if table.exists():
        return table
    scratch = cache / f"{table.name}.partial"
    shutil.rmtree(scratch, ignore_errors=True)
    log = scratch / "_delta_log"
    (log / "_sidecars").mkdir(parents=True)
    for commit in (million / "_delta_log").glob("*.json"):
        shutil.copy(commit, log)
    source = pq.ParquetFile(million / "_delta_log" / f"{9:020}.checkpoint.parquet")
    lines: list[dict[str, Any]] = [{"checkpointMetadata": {"version": 9}}, *_head(source)]
    for copy in range(COPIES):
        path = log / "_sidecars" / f"{uuid.UUID(int=copy + 1)}.parquet"
        _write_copy(source, path, copy)
        info = path.stat()
        described = {
            "path": path.name,
            "sizeInBytes": info.st_size,
            "modificationTime": info.st_mtime_ns // 10**6,
        }
        lines.append({"sidecar": described})
    name = f"{9:020}.checkpoint.{uuid.UUID(int=99)}.json"
    (log / name).write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 9, "size": len(lines)}))
    scratch.rename(table)
    return table


def _head(source: pq.ParquetFile) -> list[dict[str, Any]]:
    """Protocol and metadata of the million, with the feature that sidecars need."""
    found = []
    for kind in ("protocol", "metaData"):
        (fields,) = [row for row in source.read_row_group(0, [kind])[kind].to_pylist() if row is not None]
        found.append({name: value for name, value in fields.items() if value is not None})
    protocol, metadata = found
    features = lambda name: sorted({*(protocol.get(name) or ()), _FEATURE})  # noqa: E731 - used twice, here
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features("readerFeatures"),
        "writerFeatures": features("writerFeatures"),
    }
    metadata["configuration"] = dict(metadata.get("configuration") or ())
    metadata["format"] = {"provider": "parquet", "options": {}}
    return [{"protocol": protocol}, {"metaData": metadata}]


def _write_copy(source: pq.ParquetFile, path: Path, copy: int) -> None:
    writer: pq.ParquetWriter | None = None
    for group in range(source.num_row_groups):
        rows = source.read_row_group(group, ["add", "remove"])
        kinds = {kind: _renamed(rows[kind].combine_chunks(), copy) for kind in ("add", "remove")}
        table = pa.table(kinds).filter(pc.or_(*(pc.is_valid(values) for values in kinds.values())))
        writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _renamed(files: pa.StructArray, copy: int) -> pa.StructArray:
    fields = [files.type.field(index) for index in range(files.type.num_fields)]
    children = [files.field(index) for index in range(len(fields))]
    at = [field.name for field in fields].index("path")
    # As a writer's own names differ: near the end.
    children[at] = pc.replace_substring(children[at], ".snappy.", f"-{copy}.snappy.")
    return pa.StructArray.from_arrays(children, fields=fields, mask=pc.is_null(files))
