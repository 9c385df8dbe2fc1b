"""Conversions of what others left, and of what does not go together; ids of the rows that are converted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import InvalidTableError, SchemaMismatchError, TableExistsError
from delta_core.maintenance.convert import plan_conversion
from delta_core.storage.local import LocalLogStore


def _written(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path)


def test_converted_rows_have_ids(tmp_path: Path) -> None:
    for name, ids in (("a", [1, 2]), ("b", [3])):
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), tmp_path / f"{name}.parquet")
    convert_to_deltalake(tmp_path, configuration={"delta.enableRowTracking": "true"})
    DeltaTable(tmp_path).update({"id": "id + 10"}, "id = 1")
    found = DeltaTable(tmp_path).to_pyarrow_table(row_ids=True)
    # An updated row keeps its id: there is a column for it in the files that are written later.
    assert sorted(zip(found["id"].to_pylist(), found["_row_id"].to_pylist(), strict=True)) == [
        (2, 1),
        (3, 2),
        (11, 0),
    ]


def test_what_a_writer_left_that_died_before_version_0_is_no_table(tmp_path: Path) -> None:
    _written(tmp_path / "a.parquet", pa.table({"id": [1, 2]}))
    # On S3 with DynamoDB a commit's bytes are here before the entry that decides.
    left = tmp_path / "_delta_log" / ".tmp" / "00000000000000000000.json.1b4e28ba-2fa1-41d2-883f-0016d3cca427"
    left.parent.mkdir(parents=True)
    left.write_text("{}")
    convert_to_deltalake(tmp_path)
    assert sorted(row["id"] for row in DeltaTable(tmp_path).to_pyarrow_table().to_pylist()) == [1, 2]


def test_a_hidden_folder_of_a_log_further_in_is_that_of_a_table(tmp_path: Path) -> None:
    _written(tmp_path / "a.parquet", pa.table({"id": [1, 2]}))
    left = tmp_path / "inner" / "_delta_log" / ".tmp" / "left"
    left.parent.mkdir(parents=True)
    left.write_text("{}")
    with pytest.raises(InvalidTableError, match="'inner'"):
        convert_to_deltalake(tmp_path)


def test_a_table_is_no_plan_of_a_conversion(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    with pytest.raises(TableExistsError):
        plan_conversion(LocalLogStore(tmp_path))


def test_types_that_widen_to_one_and_not_to_each_other_are_refused(tmp_path: Path) -> None:
    """A column's record is a chain of widenings, and there is none from an int to a float."""
    for name, data_type in (("a", pa.float64()), ("b", pa.int32()), ("c", pa.float32())):
        _written(tmp_path / f"{name}.parquet", pa.table({"id": pa.array([1], data_type)}))
    with pytest.raises(SchemaMismatchError, match="id"):
        convert_to_deltalake(tmp_path, configuration={"delta.enableTypeWidening": "true"})
    assert not (tmp_path / "_delta_log").exists()
