"""Columns defined at a table's creation."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.dml.definition.new_column import IdentityGenerator, define_column
from delta_core.errors import ConfigurationError, SchemaError
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import LONG, STRING, StructType


def test_a_table_of_defined_columns(tmp_path: Path) -> None:
    schema = StructType(
        (
            define_column("n", LONG, generated_always_as=IdentityGenerator(start=7), nullable=False),
            define_column("m", LONG, generated_by_default_as=IdentityGenerator(step=-1)),
            define_column("a", LONG, comment="a number"),
            define_column("b", LONG, generated_always_as="a + 1"),
            define_column("c", STRING, default="'x'", nullable=False),
        )
    )
    DeltaTable.create(tmp_path, schema)
    write_deltalake(tmp_path, pa.table({"a": [1, 2]}), mode="append")
    write_deltalake(tmp_path, pa.table({"a": [3], "m": [100]}), mode="append")
    rows = DeltaTable(tmp_path).to_pyarrow_table().sort_by("a").to_pylist()
    assert rows == [
        {"n": 7, "m": 1, "a": 1, "b": 2, "c": "x"},
        {"n": 8, "m": 0, "a": 2, "b": 3, "c": "x"},
        {"n": 9, "m": 100, "a": 3, "b": 4, "c": "x"},
    ]
    stored = schema_from_json(DeltaTable(tmp_path).metadata().schema_string)
    assert stored.find("a").metadata == {"comment": "a number"}
    assert DeltaTable(tmp_path).protocol().writer_features == {
        "appendOnly",
        "invariants",
        "generatedColumns",
        "identityColumns",
        "allowColumnDefaults",
    }


def test_a_column_has_one_source_of_values() -> None:
    with pytest.raises(ConfigurationError, match="more than one source"):
        define_column("a", LONG, default="1", generated_always_as="b")


@pytest.mark.parametrize(
    "column",
    [
        define_column("v", STRING, generated_always_as=IdentityGenerator()),
        define_column("v", LONG, default="NULL", nullable=False),
        define_column("v", STRING, generated_always_as="a + 1"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_written(tmp_path: Path, column) -> None:
    with pytest.raises(SchemaError):
        DeltaTable.create(tmp_path / "t", StructType((define_column("a", LONG), column)))
    assert not DeltaTable.is_deltatable(tmp_path / "t")
