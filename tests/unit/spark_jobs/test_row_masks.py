"""Bitmaps for Spark: the bits are those of the positions, in whole files and in chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.reader.row_masks import CHUNK_BITS, Words, chunk_words, whole_file_words

POSITIONS = st.lists(st.integers(0, 20_000), unique=True).map(lambda found: np.array(sorted(found), np.int64))


def has_bit(words: Words, position: int) -> bool:
    """As Spark's `getbit(get(words, position >> 6), position & 63)`."""
    word = int(words[position >> 6]) if position >> 6 < len(words) else 0
    return bool(word >> (position & 63) & 1)


@given(positions=POSITIONS)
def test_a_whole_file_has_the_bits_of_the_positions(positions: np.ndarray) -> None:
    words = whole_file_words(positions)
    assert words.dtype == np.int64
    found = [row for row in range(20_100) if has_bit(words, row)]
    assert found == positions.tolist()
    assert len(words) == (0 if not len(positions) else (positions[-1] >> 6) + 1)


@given(positions=POSITIONS)
def test_chunks_have_the_bits_of_the_positions_and_none_is_empty(positions: np.ndarray) -> None:
    chunks, words = chunk_words(positions)
    assert len(chunks) == len(words)
    found = [
        (int(chunk) << CHUNK_BITS) + row
        for chunk, of_chunk in zip(chunks, words, strict=True)
        for row in range(1 << CHUNK_BITS)
        if has_bit(of_chunk, row)
    ]
    assert found == positions.tolist()
    assert all(of_chunk.any() for of_chunk in words)


@pytest.mark.parametrize("position", [0, 63, 64, 4095, 4096])
def test_one_position(position: int) -> None:
    positions = np.array([position], np.int64)
    assert has_bit(whole_file_words(positions), position)
    assert chunk_words(positions)[0].tolist() == [position >> CHUNK_BITS]
