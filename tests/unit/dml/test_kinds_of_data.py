"""What callers hand over as data: frames of any library, and what no table can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConfigurationError, DeltaError, InputDataError, SchemaError, SchemaMismatchError

VIEWS = pa.array(["x", "y"], pa.string_view())


class Marked(pa.ExtensionType):
    """A type that is defined in Python; such types have no hash."""

    def __init__(self) -> None:
        super().__init__(pa.int32(), "test.marked")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Marked:
        return cls()


MARKED = pa.ExtensionArray.from_storage(Marked(), pa.array([7, 8], pa.int32()))
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), VIEWS)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), VIEWS), ["y", None, "x"]),
        (pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), VIEWS).slice(1), [None, "x"]),
        (pa.ListArray.from_arrays([0, 1, 2], pa.DictionaryArray.from_arrays([1, 0], VIEWS)), [["y"], ["x"]]),
        (RUNS, ["x", "y", "y"]),
        (RUNS.slice(1), ["y", "y"]),
        (MARKED, [7, 8]),
        (pa.StructArray.from_arrays([MARKED], ["m"]), [{"m": 7}, {"m": 8}]),
    ],
)
def test_columns_of_any_layout(tmp_path: Path, column: pa.Array, expected: list[Any]) -> None:
    write_deltalake(tmp_path, pa.table({"c": column}))
    assert DeltaTable(tmp_path).to_pyarrow_table().column("c").to_pylist() == expected


class OfAnotherLibrary:
    """A frame with a type that pyarrow does not know."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise pa.ArrowInvalid("Invalid or unsupported format string")


@pytest.mark.parametrize(
    "data",
    [
        pa.array([1]),
        pa.chunked_array([[1]]),
        OfAnotherLibrary(),
        [{"a": 1}],
        iter([pa.record_batch({"a": [1]})]),
    ],
)
def test_what_is_no_rows(tmp_path: Path, data: object) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written") as caught:
        write_deltalake(tmp_path / "t", data)
    assert caught.value.cause
    assert not (tmp_path / "t").exists()


def not_string() -> pa.Array:
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xff\xfe")])


@pytest.mark.parametrize(
    ("column", "partition_by"),
    [
        (not_string(), None),
        (not_string(), ["c"]),
        (pa.StructArray.from_arrays([not_string()], ["x"]), None),
        (pa.ListArray.from_arrays([0, 1, 2], not_string()), None),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), not_string()), None),
    ],
)
def test_bytes_that_are_no_text_are_refused(
    tmp_path: Path, column: pa.Array, partition_by: list[str] | None
) -> None:
    with pytest.raises(SchemaMismatchError, match="c has a value that is not a valid string"):
        write_deltalake(tmp_path / "t", pa.table({"id": [1, 2], "c": column}), partition_by=partition_by)
    assert not (tmp_path / "t").exists()


def test_a_partition_value_may_hold_any_sign(tmp_path: Path) -> None:
    values = ["\x00", "a\x00b", "/", "..", "%00", "\n", " "]
    write_deltalake(tmp_path, pa.table({"part": values, "id": range(7)}), partition_by="part")
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table().sort_by("id").column("part").to_pylist() == values
    assert table.delete("id = 0").metrics["num_deleted_rows"] == 1


def test_the_error_names_the_columns_without_a_type(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="a void or empty column: tags"):
        write_deltalake(tmp_path / "t", pa.table({"id": [1], "tags": [[None]]}))


def test_a_failed_write_leaves_nothing_to_be_collected(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    # What a collected writer says of its closed file is an unraisable exception, which fails the test.
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "part=x").write_text("no directory")
    with pytest.raises(DeltaError):
        write_deltalake(tmp_path / "t", pa.table({"part": ["x"], "id": [1]}), partition_by="part")
    batches = iter([pa.record_batch({"part": ["a"], "id": [1]}), pa.record_batch({"part": ["b"], "id": [2]})])

    def broken() -> Any:
        yield from batches
        raise OSError("the source broke")

    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("part", pa.string()), ("id", pa.int64())]), broken()
    )
    with pytest.raises(InputDataError, match="OSError: the source broke") as caught:
        write_deltalake(tmp_path / "t", reader, partition_by="part")
    assert isinstance(caught.value.__cause__, OSError)
    assert not list(tmp_path.rglob("*.parquet"))
