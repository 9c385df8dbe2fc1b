"""The index of the source's keys finds the pairs that a comparison of all pairs finds."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.merge import hash_index, key_index
from delta_core.merge.hash_index import HashIndex
from delta_core.merge.hashing import hashes
from delta_core.merge.key_index import KeyIndex, blocks, comparable

_WIDE = 2**62


def _pairs(index: KeyIndex | HashIndex, keys: list[pa.Array]) -> set[tuple[int, int]]:
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


def _hashed(columns: list[pa.Array], null_safe: list[bool], candidates: Any = None) -> HashIndex:
    types = [column.type for column in columns]
    num_rows = len(columns[0])
    parts = [[column.slice(start, 7) for column in columns] for start in range(0, num_rows, 7)]
    return HashIndex(
        ([comparable(value, kind) for value, kind in zip(part, types, strict=True)] for part in parts),
        types,
        num_rows=num_rows,
        null_safe=null_safe,
        candidates=candidates,
        keys_of=lambda rows: [column.take(pa.array(rows)) for column in columns],
    )


@pytest.mark.parametrize("collides", [False, True], ids=["hashes", "equal hashes"])
@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 2, 3],
        [-_WIDE, 0, 7, _WIDE],
        ["", "a", "b", "abcdefgh", "abcdefghi", "x" * 700, "x" * 701],
        [b"", b"a", b"abcdefgh\0", b"abcdefgh"],
        [0.0, -0.0, float("nan"), 1.5],
        [Decimal("1.10"), Decimal("-1.10"), Decimal("99999.99")],
        [dt.date(2020, 1, 1), dt.date(1969, 12, 31)],
        [True, False],
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_hashed_keys_find_what_held_keys_find(
    values: list[Any], collides: bool, seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hash_index, "BLOCK_PAIRS", 5)
    if collides:
        monkeypatch.setattr(
            hash_index, "hashes", lambda found: (hashes(found)[0] & np.uint64(0), hashes(found)[1])
        )
    rng = random.Random(seed)
    for null_safe in ([False, False], [True, False], [True, True]):
        source = [(rng.choice([*values, None]), rng.choice([*values, None])) for _ in range(30)]
        target = [(rng.choice([*values, None]), rng.choice([*values, None])) for _ in range(20)]
        kind = pa.array(values).type
        columns = [pa.array([None, *(row[i] for row in source)], kind).slice(1) for i in (0, 1)]
        keys = [pa.array([None, *(row[i] for row in target)], kind).slice(1) for i in (0, 1)]
        candidates = np.array([rng.random() < 0.8 for _ in source])
        held = KeyIndex(
            [pa.chunked_array([column]) for column in columns],
            [kind, kind],
            null_safe=null_safe,
            candidates=candidates,
        )
        index = _hashed(columns, null_safe, candidates)
        assert _pairs(index, keys) == _pairs(held, keys)
        assert not index.is_unique or held.is_unique


def test_an_index_of_hashes_without_rows() -> None:
    index = _hashed([pa.array([None, None], pa.string())], [False])
    assert index.is_unique
    assert _pairs(index, [pa.array(["a", None])]) == set()


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
