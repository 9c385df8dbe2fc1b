"""Small tables to drop features of, and who looks at them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore

BASE = frozenset({"appendOnly", "invariants"})
PROTECTED = BASE | {"checkpointProtection"}


def rows(first: int, count: int = 10) -> pa.Table:
    return pa.table({"id": list(range(first, first + count)), "t": [f"t{i}" for i in range(count)]})


def make(path: Path, **configuration: str) -> DeltaTable:
    """Three commits of ten rows, and one row deleted."""
    given = {f"delta.{key.replace('__', '.')}": value for key, value in configuration.items()}
    for number in range(3):
        write_deltalake(path, rows(number * 10), mode="append", configuration=given if number == 0 else None)
    table = DeltaTable(path)
    table.delete("id = 3")
    return table


def ids(path: Path, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(path, version=version).to_pyarrow_table()["id"].to_pylist())


def by_peer(path: Path) -> list[int]:
    return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table()["id"].to_pylist())


def operations(path: Path) -> list[str]:
    return [str(entry.commit_info.operation) for entry in DeltaTable(path).history()]


def actions(path: Path, version: int, kind: str) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [found[kind] for found in map(json.loads, lines) if kind in found]


def snapshot_of(path: Path) -> Snapshot:
    return Snapshot.load(LocalLogStore(path))
