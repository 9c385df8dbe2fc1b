"""`delta.rowTrackingSuspended`: rows get no ids meanwhile (PROTOCOL.md, "Row Tracking")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidTableError

ENABLED = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
SUPPORTED = {"delta.feature.rowTracking": "supported"}


def added(path: Path, version: int) -> dict[str, Any]:
    lines = (path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    (found,) = [action["add"] for action in map(json.loads, lines) if "add" in action]
    return found


def test_rows_get_ids_before_and_after(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, pa.schema([("id", pa.int64())]), configuration=SUPPORTED)
    write_deltalake(table, pa.table({"id": [1, 2]}), mode="append")
    table.alter.set_properties({SUSPENDED: "true"})
    write_deltalake(table, pa.table({"id": [3]}), mode="append")
    table.alter.set_properties({SUSPENDED: "false"})
    write_deltalake(table, pa.table({"id": [4]}), mode="append")
    numbers = [
        (add.get("baseRowId"), add.get("defaultRowCommitVersion"))
        for add in (added(tmp_path, version) for version in (1, 3, 5))
    ]
    assert numbers == [(0, 1), (None, None), (2, 5)]


def test_it_is_not_both_enabled_and_suspended(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    with pytest.raises(InvalidTableError, match="enabled and suspended at the same time"):
        DeltaTable.create(tmp_path, schema, configuration={ENABLED: "true", SUSPENDED: "true"})
    table = DeltaTable.create(tmp_path, schema, configuration={ENABLED: "true"})
    with pytest.raises(InvalidTableError, match="enabled and suspended at the same time"):
        table.alter.set_properties({SUSPENDED: "true"})
    assert DeltaTable(tmp_path).version() == 0
    table.alter.set_properties({ENABLED: "false", SUSPENDED: "true"})
    table.alter.set_properties({ENABLED: "true"})
    assert SUSPENDED not in table.metadata().configuration
