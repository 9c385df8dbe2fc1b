"""The index of the source's keys finds the pairs that a comparison of all pairs finds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.merge import key_index
from delta_core.merge.key_index import KeyIndex, blocks

_WIDE = 2**62


def _pairs(index: KeyIndex, keys: list[pa.Array]) -> set[tuple[int, int]]:
    return {
        (int(target), int(source))
        for targets, sources in index.pairs(keys)
        for target, source in zip(targets, sources, strict=True)
    }


def _equal(left: Any, right: Any, *, null_safe: bool) -> bool:
    return left == right and (null_safe or left is not None)


@pytest.mark.parametrize("values", [[0, 1, 2, 3], [-_WIDE, 0, 7, _WIDE], list("abc")])
@pytest.mark.parametrize("unique", [True, False])
def test_equal_keys_are_found(
    values: list[Any], unique: bool, seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_index, "BLOCK_PAIRS", 5)
    rng = random.Random(seed)
    for null_safe in ([False, False], [True, False], [True, True]):
        rows = [(rng.choice([*values, None]), rng.choice([*values, None])) for _ in range(30)]
        source = list(dict.fromkeys(rows)) if unique else rows
        target = [(rng.choice([*values, None]), rng.choice([*values, None])) for _ in range(20)]
        candidates = np.array([rng.random() < 0.8 for _ in source])
        columns = [pa.chunked_array([pa.array([row[i] for row in source])]) for i in (0, 1)]
        index = KeyIndex(
            columns, [column.type for column in columns], null_safe=null_safe, candidates=candidates
        )
        expected = {
            (t, s)
            for t, left in enumerate(target)
            for s, right in enumerate(source)
            if candidates[s]
            and all(_equal(a, b, null_safe=n) for a, b, n in zip(left, right, null_safe, strict=True))
        }
        keys = [pa.array([row[i] for row in target], columns[i].type) for i in (0, 1)]
        assert _pairs(index, keys) == expected


def test_products_of_many_keys_beyond_64_bits() -> None:
    rng = random.Random(7)
    source = [tuple(rng.choice((0, 3_000_000)) for _ in range(4)) for _ in range(40)]
    columns = [pa.chunked_array([pa.array([row[i] for row in source])]) for i in range(4)]
    index = KeyIndex(columns, [pa.int64()] * 4, null_safe=[False] * 4, candidates=None)
    expected = {(t, s) for t, left in enumerate(source) for s, right in enumerate(source) if left == right}
    assert _pairs(index, [column.combine_chunks() for column in columns]) == expected
    assert _pairs(index, [pa.array([1_500_000])] * 4) == set()


def test_many_bytes_of_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "_MOST_OFFSET_BYTES", 1)
    for values in (["a", "b", None], [b"a", b"b", None]):
        column = pa.chunked_array([pa.array(values)])
        index = KeyIndex([column], [column.type], null_safe=[False], candidates=None)
        assert index.types[0] in (pa.large_string(), pa.large_binary())
        assert _pairs(index, [pa.array([values[1], values[2], values[0]])]) == {(0, 1), (2, 0)}


def test_blocks_are_bounded() -> None:
    counts = np.array([3, 1, 9, 0, 2, 2])
    assert list(blocks(counts, 4)) == [(0, 2), (2, 3), (3, 6)]
    assert list(blocks(np.empty(0, np.int64), 4)) == []
