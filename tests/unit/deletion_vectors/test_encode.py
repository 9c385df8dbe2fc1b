"""Our encoder against the library that most engines use: byte for byte, and by what comes back."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from delta_core.deletion_vectors import z85
from delta_core.deletion_vectors.encode import encode_portable64, row_positions, serialize_deletion_vector
from delta_core.deletion_vectors.roaring import decode_portable64
from delta_core.errors import ConfigurationError

BUCKETS = [0, 1 << 16, 3 << 16, (1 << 32) - 70_000, 1 << 32, 5 << 33, (1 << 63) - (1 << 18)]


@st.composite
def position_sets(draw: st.DrawFn) -> list[int]:
    """Stretches of every density, near the borders of containers and buckets, and single values."""
    values = set(draw(st.lists(st.integers(0, (1 << 63) - 1), max_size=8)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.sampled_from(BUCKETS)) + draw(st.integers(0, 1 << 17))
        step = draw(st.sampled_from([1, 1, 2, 3, 15, 16, 17, 5000]))
        count = draw(st.sampled_from([1, 2, 3, 4, 5, 4095, 4096, 4097, 9000]))
        stop = min(start + step * count, 1 << 63)
        values.update(range(start, stop, step))
    return sorted(values)


def optimized(values: list[int]) -> bytes:
    bitmap = BitMap64(values)
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


@given(position_sets())
@settings(max_examples=150)
@example([])
@example([0, 1, 2])
@example([0, 1, 2, 3])
@example(list(range(65_534, 65_539)))
@example(list(range((1 << 32) - 2, (1 << 32) + 2)))
@example(list(range(1 << 16)))
@example([key << 16 for key in range(4)])
def test_bytes_are_those_of_the_roaring_library(values: list[int]) -> None:
    encoded = encode_portable64(np.array(values, np.uint64))
    assert encoded == optimized(values)
    assert decode_portable64(encoded, cardinality=len(values)).tolist() == values


@given(position_sets())
@settings(max_examples=50)
def test_the_roaring_library_reads_it(values: list[int]) -> None:
    bitmap = BitMap64.deserialize(encode_portable64(values))
    assert len(bitmap) == len(values)
    assert bitmap == BitMap64(values)


@pytest.mark.parametrize(
    ("values", "size_bytes"),
    [
        ([7], 8 + 4 + 8 + 4 + 4 + 2),
        (range(0, 8192, 2), 8 + 4 + 8 + 4 + 4 + 8192),
        (range(0, 8194, 2), 8 + 4 + 8 + 4 + 4 + 8192),
        (range(100, 60_000), 8 + 4 + 4 + 1 + 4 + 2 + 4),
    ],
    ids=["array", "largest array", "least bitset", "run"],
)
def test_each_container_takes_its_smallest_form(values: Any, size_bytes: int) -> None:
    assert len(encode_portable64(list(values))) == size_bytes


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_any_integers_in_any_order(kind: type[np.generic]) -> None:
    unordered = np.array([9, 3, 3, 0, 120], kind)
    assert row_positions(unordered).tolist() == [0, 3, 9, 120]
    assert row_positions(unordered).dtype == np.int64
    assert encode_portable64(unordered) == optimized([0, 3, 9, 120])


def test_nothing_is_copied_that_is_right() -> None:
    rows = np.arange(5)
    assert row_positions(rows) is rows
    assert row_positions([]).dtype == np.int64


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([-1, 2], "from -1 to 2"),
        ([3, -1], "from -1 to 3"),
        (np.array([1 << 63], np.uint64), "to 9223372036854775808"),
        ([1.0], "float64"),
        ([True], "bool"),
        (["1"], "<U1"),
        ([[1], [2]], "has 2 dimensions"),
        (5, "has 0 dimensions"),
    ],
)
def test_what_is_no_position(values: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        encode_portable64(values)


def test_the_magic_number_comes_first() -> None:
    assert serialize_deletion_vector([4])[:4] == (1681511377).to_bytes(4, "little")
    assert serialize_deletion_vector([4])[4:] == encode_portable64([4])


def test_millions_of_rows_take_memory_in_proportion() -> None:
    rows = np.arange(0, 12_000_000, 4)
    tracemalloc.start()
    try:
        encoded = encode_portable64(rows)
        assert tracemalloc.get_traced_memory()[1] < 8 * rows.nbytes
    finally:
        tracemalloc.stop()
    assert decode_portable64(encoded, cardinality=len(rows)).tolist() == rows.tolist()


@given(st.binary(max_size=64))
def test_base85_gives_the_bytes_back(data: bytes) -> None:
    text = z85.encode(data)
    assert len(text) == -(-len(data) // 4) * 5
    assert z85.decode(text)[: len(data)] == data
    assert z85.decode(text)[len(data) :] == bytes(-len(data) % 4)


def test_base85_as_its_specification_gives_it() -> None:
    assert z85.encode(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"
