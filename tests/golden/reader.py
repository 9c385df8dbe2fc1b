"""Deltaward behind the calls that the golden tables' `compare.py` makes."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from delta_core.scan.change_data import ChangeDataScan
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store


def _open(path: str, version: int | None = None, timestamp: str | None = None) -> Snapshot:
    time_ms = None if timestamp is None else round(datetime.fromisoformat(timestamp).timestamp() * 1000)
    return Snapshot.load(open_store(path), version=version, timestamp_ms=time_ms)


def read(path: str, version: int | None = None, timestamp: str | None = None) -> pa.Table:
    """The rows of a table, at a version or an ISO 8601 time."""
    return Scan(_open(path, version, timestamp)).to_table()


def read_cdf(path: str, start: int, end: int | None) -> pa.Table:
    """Change data between two versions, both included; None is up to the latest."""
    return ChangeDataScan(_open(path, end), starting_version=start).to_table()


def read_snapshot(path: str, version: int | None = None) -> dict[str, Any]:
    """The facts of a snapshot, under the corpus's names."""
    snapshot = _open(path, version)
    protocol, metadata = snapshot.protocol, snapshot.metadata
    paths = snapshot.files.to_table(["path"]).column("path").to_pylist()
    return {
        "version": snapshot.version,
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "reader_features": sorted(protocol.reader_features or ()),
        "writer_features": sorted(protocol.writer_features or ()),
        "num_files": snapshot.files.num_files,
        "paths": [unquote(item) for item in paths],
        "partition_columns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "schema_string": metadata.schema_string,
        "transactions": {name: item.version for name, item in snapshot.transactions.items()},
        "domain_metadata": {name: item.configuration for name, item in snapshot.domain_metadata.items()},
    }
