"""Damage that knows no format: what disks, copies and cut connections do."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_PATTERNS = (
    b"\0",
    b"\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"PAR1",
)


def mutate_bytes(data: bytes, rng: random.Random, others: Sequence[bytes]) -> tuple[str, bytes]:
    """One change; gives its name and the new bytes.

    Args:
        data: the file.
        rng: draws the change.
        others: files whose bytes may get into this one.
    """
    if not data:
        return "replace", rng.choice(others)
    name = rng.choices(list(_MUTATORS), [weight for _, weight in _MUTATORS.values()])[0]
    return name, _MUTATORS[name][0](data, rng, others)


def _flip(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    pattern = rng.choice((*_PATTERNS, rng.randbytes(rng.randint(1, 16))))
    at = rng.randrange(len(data))
    return data[:at] + pattern + data[at + len(pattern) :]


def _insert(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice((*_PATTERNS, rng.randbytes(rng.randint(1, 64)))) + data[at:]


def _delete(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 1, 4, 64)) :]


def _truncate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    return data[: rng.choice((0, 1, rng.randrange(len(data)), len(data) - 1))]


def _zeros(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """What a crash leaves of a file whose size was written and whose content was not."""
    at = rng.choice((0, rng.randrange(len(data))))
    return data[:at] + bytes(len(data) - at)


def _repeat(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    start, end = sorted((rng.randrange(len(data)), rng.randrange(len(data)) + 1))
    return data[:end] + data[start:end] + data[end:]


def _splice(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other) + 1) :]


def _replace(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    return rng.choice(others)


_MUTATORS: dict[str, tuple[Callable[[bytes, random.Random, Sequence[bytes]], bytes], int]] = {
    "flip bits": (_flip, 6),
    "overwrite": (_overwrite, 4),
    "insert": (_insert, 2),
    "delete": (_delete, 2),
    "truncate": (_truncate, 2),
    "zeros": (_zeros, 1),
    "repeat": (_repeat, 1),
    "splice": (_splice, 1),
    "replace": (_replace, 1),
}
