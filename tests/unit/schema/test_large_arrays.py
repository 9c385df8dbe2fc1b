"""Arrays that no array of a table's types can hold become several; the limit is lowered for most of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import SchemaMismatchError
from delta_core.schema import large_arrays
from delta_core.schema.conversion import convert_chunked
from delta_core.schema.large_arrays import narrowed, pieces, row_slices, value_bytes

STRINGS = [None if number % 7 == 0 else f"é{number}" * (number % 5) for number in range(100)]
LIST = pa.list_(pa.field("element", pa.string()))


def plain(kind: pa.DataType) -> Callable[[], pa.Array]:
    return lambda: pa.array(STRINGS, kind)


LAYOUTS: dict[str, tuple[Callable[[], pa.Array], pa.DataType]] = {
    "large": (plain(pa.large_string()), pa.string()),
    "view": (plain(pa.string_view()), pa.string()),
    "bytes": (lambda: pa.array([t and t.encode() for t in STRINGS], pa.large_binary()), pa.binary()),
    "dictionary": (lambda: pa.array(STRINGS, pa.large_string()).dictionary_encode(), pa.string()),
    "runs": (lambda: pa.compute.run_end_encode(pa.array(STRINGS, pa.large_string())), pa.string()),
    "list": (lambda: pa.array([[t, t] for t in STRINGS], pa.large_list(pa.large_string())), LIST),
    "struct": (
        lambda: pa.array(
            [None if t is None else {"a": t} for t in STRINGS], pa.struct([("a", pa.large_string())])
        ),
        pa.struct([("a", pa.string())]),
    ),
}


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(large_arrays, "CHUNK_BYTES", 64)
    return 64


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cut", [slice(0, 100), slice(3, 90), slice(99, 100), slice(0, 0)])
def test_the_parts_of_a_column_hold_its_values(layout: str, cut: slice, limit: int) -> None:
    make, target = LAYOUTS[layout]
    array = make()[cut]
    found = convert_chunked(pa.chunked_array([array], array.type), target)
    found.validate(full=True)
    assert found.type == target
    assert found.to_pylist() == make().to_pylist()[cut]
    if len(array) > 50:
        assert found.num_chunks > 3
        assert all(chunk.nbytes <= 2 * limit or len(chunk) < 3 for chunk in found.chunks)


def test_what_fits_is_one_part() -> None:
    array = pa.array(STRINGS, pa.large_string())
    assert list(pieces(array)) == [array]
    assert list(row_slices(pa.table({"a": array}))) == [(0, 100)]


def test_texts_are_not_copied() -> None:
    array = pa.array(STRINGS, pa.large_string()).slice(3, 90)
    found = narrowed(array, pa.string())
    assert found.buffers()[2].address >= array.buffers()[2].address
    assert found.buffers()[2].address < array.buffers()[2].address + array.buffers()[2].size
    assert found.equals(pa.array(STRINGS[3:93]))


def test_the_texts_of_views_are_counted_by_their_lengths() -> None:
    strings = ["x" * 100, None, "short"] * 10
    array = pa.array(strings, pa.string_view())
    assert value_bytes(array.slice(0, 3)) == 105
    assert value_bytes(array) == 1050


def test_rows_of_large_columns_get_to_their_partitions(limit: int, tmp_path: Path) -> None:
    rows = pa.table(
        {"p": [number % 3 for number in range(100)], "text": pa.array(STRINGS, pa.large_string())}
    )
    write_deltalake(tmp_path / "table", rows, partition_by="p")
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    write_deltalake(tmp_path / "stream", reader, partition_by="p")
    for name in ("table", "stream"):
        found = DeltaTable(tmp_path / name).to_pyarrow_table()
        assert sorted(found["text"].to_pylist(), key=str) == sorted(STRINGS, key=str)
        for number in range(3):
            part = DeltaTable(tmp_path / name).to_pyarrow_table(filters=f"p = {number}")
            assert part["text"].to_pylist() == STRINGS[number::3]


def test_a_message_does_not_quote_a_whole_value(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"n": pa.array([1], pa.int32())}))
    wide = pa.table({"n": pa.array(["1" * 100_000], pa.large_string())})
    with pytest.raises(SchemaMismatchError) as caught:
        write_deltalake(tmp_path, wide, mode="append")
    assert len(str(caught.value)) < 10_000


@pytest.mark.soak
def test_more_than_two_gibibytes_of_text_in_one_array(tmp_path: Path) -> None:
    rows, width = 2200, 1_000_000
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int64) * width)
    letters = pa.py_buffer(np.full(rows * width, ord("x"), np.uint8))
    text = pa.Array.from_buffers(pa.large_string(), rows, [None, offsets, letters])
    write_deltalake(tmp_path, pa.table({"id": np.arange(rows), "text": text}))
    found = DeltaTable(tmp_path).to_pyarrow_table(["id"])
    assert found["id"].to_pylist() == list(range(rows))
