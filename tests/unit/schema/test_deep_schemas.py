"""Types in types in types: what is written can be read again, and what could not be is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import SchemaError
from delta_core.schema.json import MAX_DEPTH, MAX_WRITTEN_DEPTH, schema_from_json, schema_to_json
from delta_core.schema.types import LONG, DataType, StructField, StructType

Wrap = tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any]]

STRUCT: Wrap = (lambda kind: pa.struct([("x", kind)]), lambda value: {"x": value})
LIST: Wrap = (pa.list_, lambda value: [value])
MAP: Wrap = (lambda kind: pa.map_(pa.string(), kind), lambda value: [("k", value)])


def nested(wrap: Wrap, depth: int) -> pa.Table:
    kind: pa.DataType = pa.int64()
    value: Any = 1
    for _ in range(depth):
        kind, value = wrap[0](kind), wrap[1](value)
    return pa.table({"id": [1, 2], "deep": pa.array([value, None], kind)})


@pytest.mark.parametrize(("wrap", "depth"), [(STRUCT, 79), (LIST, 39), (MAP, 39)])
def test_what_is_written_is_read(tmp_path: Path, wrap: Wrap, depth: int) -> None:
    rows = nested(wrap, depth)
    configuration = {"delta.checkpoint.writeStatsAsStruct": "true"}
    write_deltalake(tmp_path, rows, configuration=configuration)
    table = DeltaTable(tmp_path)
    table.create_checkpoint()
    table.delete("id = 2")
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == rows.to_pylist()[:1]


@pytest.mark.parametrize(("wrap", "depth"), [(STRUCT, 80), (LIST, 40), (MAP, 40), (STRUCT, 200), (LIST, 200)])
def test_deeper_is_refused_and_nothing_is_there(tmp_path: Path, wrap: Wrap, depth: int) -> None:
    with pytest.raises(SchemaError, match="nested too deeply"):
        write_deltalake(tmp_path / "t", nested(wrap, depth))
    assert not (tmp_path / "t").exists()


def test_schemas_that_others_wrote_deeper_are_read_but_not_written() -> None:
    kind: DataType = LONG
    for _ in range(MAX_DEPTH - 1):
        kind = StructType((StructField(name="x", data_type=kind),))
    assert isinstance(kind, StructType)
    text = '"long"'
    for _ in range(MAX_DEPTH - 1):
        text = f'{{"type":"struct","fields":[{{"name":"x","type":{text},"nullable":true,"metadata":{{}}}}]}}'
    assert schema_from_json(text) == kind
    with pytest.raises(SchemaError, match=str(MAX_WRITTEN_DEPTH)):
        schema_to_json(kind)
