"""Changes of a definition that read rows, and replaceWhere, on a shallow clone: its files are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.errors import PathEscapeError
from delta_core.schema.types import LONG, StructField, StructType
from delta_core.table_features.identity import define_identity

CHANGES: dict[str, Callable[[DeltaTable], Any]] = {
    "add a constraint": lambda table: table.alter.add_constraint({"positive": "id > 0"}),
    "set NOT NULL": lambda table: table.alter.set_not_null("x"),
    "synchronize an identity column": lambda table: table.alter.sync_identity("id"),
    "enable Iceberg compatibility": lambda table: table.alter.set_properties(
        {"delta.enableIcebergCompatV1": "true"}
    ),
    "replace rows": lambda table: write_deltalake(
        table, pa.table({"id": [2], "x": [9]}), mode="overwrite", predicate="id = 2"
    ),
}


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """A table and a shallow clone of it."""
    source, clone = tmp_path / "source", tmp_path / "clone"
    identity = StructField(name="id", data_type=LONG)
    schema = StructType(
        (
            define_identity(identity, start=1, step=1, allow_explicit_insert=True),
            StructField(name="x", data_type=LONG),
        )
    )
    DeltaTable.create(source, schema, configuration={"delta.columnMapping.mode": "name"})
    write_deltalake(source, pa.table({"id": [1, 2, 3], "x": [1, 2, 3]}), mode="append")
    clone_table(source, clone, shallow=True)
    return source, clone


@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_the_source_are_read_where_its_root_is_allowed(roots: tuple[Path, Path], change: str) -> None:
    source, clone = roots
    table = DeltaTable(clone, allowed_roots=[source])
    CHANGES[change](table)
    assert table.version() == 1
    rows = DeltaTable(clone, allowed_roots=[source]).to_pyarrow_table().sort_by("id").to_pylist()
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert rows[1]["x"] == (9 if change == "replace rows" else 2)


@pytest.mark.parametrize("change", CHANGES)
def test_and_nowhere_else(roots: tuple[Path, Path], change: str) -> None:
    _, clone = roots
    with pytest.raises(PathEscapeError):
        CHANGES[change](DeltaTable(clone))
    assert DeltaTable(clone).version() == 0
