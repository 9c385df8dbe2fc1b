"""Files of writers whose strings and bytes are Arrow views: rows can be left out of them, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable

ROWS: list[dict[str, Any]] = [
    {"id": 1, "s": "a", "b": b"1", "q": {"a": "x"}, "l": ["x"]},
    {"id": 2, "s": "b", "b": b"2", "q": None, "l": []},
    {"id": 3, "s": None, "b": None, "q": {"a": None}, "l": None},
]


def _schema(text: pa.DataType, data: pa.DataType) -> pa.Schema:
    nested = [("q", pa.struct([("a", text)])), ("l", pa.list_(text))]
    return pa.schema([("id", pa.int64()), ("s", text), ("b", data), *nested])


@pytest.mark.parametrize("dvs", [True, False])
def test_rows_are_left_out_of_files_with_views(tmp_path: Path, dvs: bool) -> None:
    configuration = {"delta.enableDeletionVectors": "true"} if dvs else {}
    DeltaTable.create(tmp_path, _schema(pa.string(), pa.binary()), configuration=configuration)
    rows = pa.Table.from_pylist(ROWS, schema=_schema(pa.string_view(), pa.binary_view()))
    file = tmp_path / "f.parquet"
    pq.write_table(rows, file)
    assert pq.read_schema(file).field("s").type == pa.string_view()
    add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1}
    commit = tmp_path / "_delta_log" / f"{1:020}.json"
    commit.write_text(json.dumps({"add": {**add, "dataChange": True}}))

    table = DeltaTable(tmp_path)
    table.delete("id = 2")
    table.update({"s": "concat(s, '!')"}, "id = 1")
    found = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
    assert found == [{**ROWS[0], "s": "a!"}, ROWS[2]]
