"""Data in every form that callers have it in: lists of parts, frames, columns of any Arrow layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConfigurationError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})


def ids(root: Path) -> list[int]:
    return sorted(DeltaTable(root).to_pyarrow_table()["id"].to_pylist())


@pytest.mark.parametrize(
    "parts",
    [
        ROWS.to_batches(max_chunksize=1),
        tuple(ROWS.to_batches(max_chunksize=2)),
        [ROWS.slice(0, 1), ROWS.slice(1)],
        [ROWS.slice(0, 2).to_reader(), ROWS.slice(2).to_batches()[0]],
        [ROWS.slice(0, 2), [ROWS.slice(2)]],
    ],
)
def test_parts_in_a_list_are_one_write(tmp_path: Path, parts: Any) -> None:
    committed = write_deltalake(tmp_path, parts)
    assert committed is not None
    assert committed.version == 0
    assert ids(tmp_path) == [1, 2, 3]
    assert Snapshot.load(LocalLogStore(tmp_path)).files.to_table(["path"]).num_rows == 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "does not specify any columns"),
        ([ROWS, ROWS.select(["id"])], "Part 1 of the data has other columns than part 0"),
        ([ROWS, ROWS.select(["name", "id"])], "Part 1"),
        ([{"id": 1}], "Data of type dict"),
        ((batch for batch in ROWS.to_batches()), "RecordBatchReader.from_batches"),
        (pa.array([1, 2]), "cannot convert it to a table"),
        (pa.chunked_array([[1, 2]]), "cannot convert it to a table"),
    ],
)
def test_what_is_no_rows_of_columns_is_refused(tmp_path: Path, data: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        write_deltalake(tmp_path / "t", data)
    assert not (tmp_path / "t").exists()


def test_a_frame_that_arrow_cannot_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Data of type DataFrame cannot be written"):
        write_deltalake(tmp_path / "t", pandas.DataFrame({"id": [1, "one"]}))


@pytest.mark.parametrize("index", [pa.uint32(), pa.int8(), pa.uint64()])
@pytest.mark.parametrize("values", [pa.string_view(), pa.binary_view(), pa.large_string(), pa.string()])
def test_categories_of_any_layout_are_written(
    tmp_path: Path, index: pa.DataType, values: pa.DataType
) -> None:
    strings = [b"x", b"y"] if values == pa.binary_view() else ["x", "y"]
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], index), pa.array(strings, values))
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3, 4], "kind": column}))
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    assert found["kind"].to_pylist() == [strings[0], None, strings[1], strings[0]]


def test_categories_may_be_partition_columns(tmp_path: Path) -> None:
    kinds = pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1], pa.uint32()), pa.array(["x", "y"], pa.string_view())
    )
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "kind": kinds}), partition_by="kind")
    assert DeltaTable(tmp_path).to_pyarrow_table(filters="kind = 'y'")["id"].to_pylist() == [3]
