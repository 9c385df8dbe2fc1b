"""A table as an outsider sees it: read with the deltalake package, its log and its directory.

Nothing here, in `demo.checks` or in `demo.summary` may import deltaward, Spark or Airflow: they are what
the demonstration's result is compared with, so they must not share its mistakes.
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
        """The newest version first, each with its number and, where it has some, its decoded provenance."""
        entries = DeltaTable(str(self.path)).history()
        entries.sort(key=lambda entry: entry["version"], reverse=True)
        return entries

    def commit(self, version: int) -> list[dict[str, Any]]:
        """The actions of one version, straight from the log."""
        path = self.path / LOG / f"{version:020}.json"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def checkpointed_version(self) -> int | None:
        """The version that the log's hint names, when the checkpoint is there."""
        try:
            version = int(json.loads((self.path / LOG / "_last_checkpoint").read_text())["version"])
        except FileNotFoundError:
            return None
        exists = any((self.path / LOG).glob(f"{version:020}.checkpoint*.parquet"))
        return version if exists else None

    def vacuumable(self, *, retention_hours: int | None) -> set[str]:
        """What a vacuum by deltalake itself would delete; None takes the protected retention."""
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
    """Which run made a version, as its `userMetadata` says; empty when it says nothing."""
    try:
        decoded = json.loads(entry.get("userMetadata") or "{}")
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """True when both hold the same rows as often, in whatever order of rows and columns."""
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
    """How many rows repeat the key of another."""
    distinct = table.select(key).group_by(key).aggregate([]).num_rows
    return table.num_rows - distinct
