"""A table of many partitions with one small file each, readable as Delta and as plain partitioned Parquet.

Both readings share the data files: what is compared is finding them. The log has one checkpoint and ten
commits of nothing but provenance.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA

ROWS_PER_FILE = 10
# File systems bound how many names a file may have.
_NAMES_PER_FILE = 50_000
_CHUNK_ROWS = 100_000
_TIME_MS = 1_700_000_000_000
_FILE = "part-00000.snappy.parquet"


def partitioned_table(cache: Path, partitions: int) -> Path:
    """The table, made once and kept in the cache: column `p` from 0 on, ten rows for each value."""
    table = cache / f"partitions-{partitions}"
    if table.exists():
        return table
    scratch = cache / f"{table.name}.partial"
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "_delta_log").mkdir(parents=True)
    size = 0
    for number in range(partitions):
        directory = scratch / f"p={number}"
        os.mkdir(directory)
        if number % _NAMES_PER_FILE == 0:
            original = directory / _FILE
            rows = {"id": list(range(ROWS_PER_FILE)), "text": [f"row {n}" for n in range(ROWS_PER_FILE)]}
            pq.write_table(pa.table(rows), original)
            size = original.stat().st_size
        else:
            os.link(original, directory / _FILE)
    _write_log(scratch / "_delta_log", partitions, size)
    scratch.rename(table)
    return table


def _write_log(log: Path, partitions: int, size: int) -> None:
    types = {"id": "long", "text": "string", "p": "integer"}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    metadata = {
        "id": str(uuid.UUID(int=2)),
        "format": {"provider": "parquet", "options": []},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["p"],
        "configuration": [],
        "createdTime": _TIME_MS,
    }
    first: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    with pq.ParquetWriter(log / f"{9:020}.checkpoint.parquet", CHECKPOINT_SCHEMA) as writer:
        for start in range(0, partitions, _CHUNK_ROWS):
            numbers = range(start, min(start + _CHUNK_ROWS, partitions))
            rows = [*(first if start == 0 else ()), *({"add": _add(number, size)} for number in numbers)]
            writer.write_table(pa.Table.from_pylist(rows, CHECKPOINT_SCHEMA))
    for version in range(9, 20):
        line = {"commitInfo": {"timestamp": _TIME_MS + version, "operation": "WRITE"}}
        (log / f"{version:020}.json").write_text(json.dumps(line) + "\n")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 9, "size": partitions + 2}))


def _add(number: int, size: int) -> dict[str, Any]:
    bounds = {"id": 0, "text": "row 0"}, {"id": ROWS_PER_FILE - 1, "text": f"row {ROWS_PER_FILE - 1}"}
    stats = {"numRecords": ROWS_PER_FILE, "minValues": bounds[0], "maxValues": bounds[1], "nullCount": {}}
    return {
        "path": f"p={number}/{_FILE}",
        "partitionValues": [("p", str(number))],
        "size": size,
        "modificationTime": _TIME_MS,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
