"""An independent view of a table: read with the deltalake package, from its log and its directory.

This module, `demo.checks` and `demo.summary` must not import deltaward, Spark or Airflow. They check the
result of the demonstration independently, so they must not share its defects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

LOG = "_delta_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Live files of one version."""

    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class TableReader:
    """Reads any retained version of one table."""

    path: Path

    @cached_property
    def latest_version(self) -> int:
        return DeltaTable(str(self.path)).version()

    def rows(self, version: int) -> pa.Table:
        return DeltaTable(str(self.path), version=version).to_pyarrow_table()

    def files(self, version: int) -> list[dict[str, Any]]:
        """The live files: path, size_bytes, num_records, partition, min and max by column."""
        actions = DeltaTable(str(self.path), version=version).get_add_actions(flatten=False)
        return pa.table(actions).to_pylist()

    def paths(self, version: int) -> set[str]:
        return {file["path"] for file in self.files(version)}

    def size(self, version: int) -> Size:
        files = self.files(version)
        return Size(files=len(files), bytes=sum(file["size_bytes"] for file in files))

    def history(self) -> list[dict[str, Any]]:
        """The history of the table, newest version first."""
        entries = DeltaTable(str(self.path)).history()
        entries.sort(key=lambda entry: entry["version"], reverse=True)
        return entries

    def commit(self, version: int) -> list[dict[str, Any]]:
        """The actions of one version, read directly from the log."""
        path = self.path / LOG / f"{version:020}.json"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def checkpointed_version(self) -> int | None:
        """The version in `_last_checkpoint`; None if the file or its checkpoint is missing."""
        try:
            version = int(json.loads((self.path / LOG / "_last_checkpoint").read_text())["version"])
        except FileNotFoundError:
            return None
        exists = any((self.path / LOG).glob(f"{version:020}.checkpoint*.parquet"))
        return version if exists else None

    def vacuumable(self, *, retention_hours: int | None) -> set[str]:
        """The files that deltalake's own vacuum would delete. None uses the protected retention."""
        table = DeltaTable(str(self.path))
        if retention_hours is None:
            return set(table.vacuum(dry_run=True))
        return set(table.vacuum(retention_hours, dry_run=True, enforce_retention_duration=False))

    def data_files(self) -> dict[str, int]:
        """Every data file in the directory, live or not: relative path and size in bytes."""
        return {
            path.relative_to(self.path).as_posix(): path.stat().st_size
            for path in sorted(self.path.rglob("*.parquet"))
            if not path.relative_to(self.path).as_posix().startswith("_")
        }


def provenance(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The provenance of a version in its `userMetadata`; empty if it records none."""
    try:
        decoded = json.loads(entry.get("userMetadata") or "{}")
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether both tables have the same rows with the same counts, in any order of rows and columns."""
    if one.num_rows != other.num_rows or set(one.column_names) != set(other.column_names):
        return False
    names = sorted(one.column_names)
    schema = pa.schema([pa.field(name, _comparable(other.schema.field(name).type)) for name in names])
    return _sorted(one, schema).equals(_sorted(other, schema))


def _comparable(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _sorted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    table = table.select(schema.names).cast(schema)
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in schema.names])
    return table.take(order).combine_chunks()


def duplicate_keys(table: pa.Table, key: list[str]) -> int:
    """The number of rows that repeat the key of another row."""
    distinct = table.select(key).group_by(key).aggregate([]).num_rows
    return table.num_rows - distinct
