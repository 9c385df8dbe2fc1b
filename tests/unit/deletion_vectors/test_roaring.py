"""Our decoder against the library that most engines use, and against damage."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pyroaring import BitMap64

from delta_core.deletion_vectors import z85
from delta_core.deletion_vectors.roaring import MalformedBitmap, decode_portable64


def serialized(values: list[int], *, runs: bool = False) -> bytes:
    bitmap = BitMap64(values)
    if runs:
        bitmap.run_optimize()
    return bytes(bitmap.serialize())


def _containers(count: int, *rest: int) -> bytes:
    """The head of a bucket without runs, and what follows it, in words of 16 bits."""
    head = (12346).to_bytes(4, "little") + count.to_bytes(4, "little")
    return head + b"".join(word.to_bytes(2, "little") for word in rest)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0],
        [2**31, 2**32 - 1, 2**32, 2**33 + 5],
        [2**62 + 1],
        list(range(100_000)),
        list(range(0, 200_000, 2)),
        [*range(10), *range(65_530, 65_540), *range(131_072, 140_000), 2**40],
        list(range(0, 1 << 20, 60_000)),
    ],
    ids=["empty", "zero", "buckets", "high", "full", "bitsets", "mixed", "arrays"],
)
@pytest.mark.parametrize("runs", [False, True])
def test_every_kind_of_container(values: list[int], runs: bool) -> None:
    found = decode_portable64(serialized(values, runs=runs), cardinality=len(values))
    assert found.dtype == np.int64
    assert found.tolist() == values


def test_random_bitmaps() -> None:
    rng = random.Random(7)
    for _ in range(200):
        values: set[int] = set()
        for _ in range(rng.randint(0, 6)):
            start = rng.choice([0, 1 << 16, 3 << 16, 1 << 32, 5 << 33]) + rng.randrange(1 << 17)
            step = rng.choice([1, 1, 2, 17, 5000])
            values.update(range(start, start + step * rng.randrange(1, 9000), step))
        data = serialized(sorted(values), runs=rng.random() < 0.5)
        assert decode_portable64(data, cardinality=len(values)).tolist() == sorted(values)


def test_another_number_of_values_than_promised() -> None:
    for cardinality in (0, 4, 6):
        with pytest.raises(MalformedBitmap, match="values"):
            decode_portable64(serialized([1, 2, 3, 70_000, 2**35]), cardinality=cardinality)


def test_damage_is_an_error_and_never_a_wrong_answer() -> None:
    """One changed or missing byte: refused, or as many values in order as promised."""
    rng = random.Random(11)
    values = [*range(300), *range(70_000, 80_000), *range(200_000, 300_000, 3), 2**33]
    for runs in (False, True):
        data = serialized(values, runs=runs)
        for _ in range(400):
            damaged = bytearray(data)
            if rng.random() < 0.3:
                del damaged[rng.randrange(len(damaged)) :]
            else:
                damaged[rng.randrange(min(len(damaged), 400))] ^= 1 << rng.randrange(8)
            try:
                found = decode_portable64(bytes(damaged), cardinality=len(values))
            except MalformedBitmap:
                continue
            assert len(found) == len(values)
            assert (np.diff(found) > 0).all()


def test_a_small_text_cannot_unfold_to_many_values() -> None:
    """4,000 full containers in 50 kB: refused at the header of the first that is too many."""
    data = serialized(list(range(40 << 16)), runs=True)
    assert len(data) < 1000
    with pytest.raises(MalformedBitmap, match="more values"):
        decode_portable64(data, cardinality=100_000)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "ends 8 bytes early"),
        ((1 << 40).to_bytes(8, "little"), "buckets"),
        ((1).to_bytes(8, "little") + bytes(4) + (99).to_bytes(4, "little"), "cookie"),
        ((1).to_bytes(8, "little") + b"\xff" * 4 + bytes(8), "2\\^63"),
        (serialized([]) + b"x", "follow"),
        ((1).to_bytes(8, "little") + bytes(4) + _containers(65_537), "65537 containers"),
        ((2).to_bytes(8, "little") + (bytes(4) + _containers(0)) * 2, "of the bitmap are not in order"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, said: str) -> None:
    with pytest.raises(MalformedBitmap, match=said):
        decode_portable64(data, cardinality=0)


@pytest.mark.parametrize("values", [(2, 1), (5, 5)])
def test_the_values_of_a_container_are_in_order(values: tuple[int, int]) -> None:
    # One container of two values (its key, its size less one, its offset), and then they.
    data = (1).to_bytes(8, "little") + bytes(4) + _containers(1, 0, 1, 16, 0, *values)
    with pytest.raises(MalformedBitmap, match="values of a container are not in order"):
        decode_portable64(data, cardinality=2)
    in_order = (1).to_bytes(8, "little") + bytes(4) + _containers(1, 0, 1, 16, 0, 1, 2)
    assert decode_portable64(in_order, cardinality=2).tolist() == [1, 2]


def test_base85() -> None:
    # The specification's own example: eight bytes, ten characters.
    assert z85.decode("HelloWorld") == bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert z85.decode("") == b""
    for wrong in ("two words!", "abcd", "#####", "é1234"):
        with pytest.raises(ValueError, match="base85"):
            z85.decode(wrong)
