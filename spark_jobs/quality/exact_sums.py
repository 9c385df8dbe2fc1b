"""Sums and sums of squares with all their digits.

A sum of doubles depends on the order of its parts, and so on how the rows lie in files and on who adds them
up. Here numbers are added as whole numbers of a fixed unit, in limbs of 16 bits that numpy adds without
overflow, so a batch's sum is one number, however it is divided.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]

_LIMB: Final = 16
_MANTISSA: Final = 53
_MOST_ROWS: Final = 1 << 24
"""Of one call: 2^24 products of two limbs fit into 64 bits with room to spare."""


def power_sums(values: pa.Array, *, squares: bool) -> tuple[Fraction, Fraction]:
    """(sum, sum of squares) of whole numbers, decimals or finite doubles, none of them null.

    Args:
        values: the numbers.
        squares: whether the second is wanted; else it is 0.
    """
    total = of_squares = Fraction(0)
    for start in range(0, len(values), _MOST_ROWS):
        first, second = _of_part(values.slice(start, _MOST_ROWS), squares=squares)
        total += first
        of_squares += second
    return total, of_squares


def _of_part(values: pa.Array, *, squares: bool) -> tuple[Fraction, Fraction]:
    if pa.types.is_floating(values.type):
        return _of_doubles(np.asarray(values.cast(pa.float64())), squares=squares)
    if pa.types.is_decimal(values.type):
        limbs = _decimal_limbs(values)
        unit = Fraction(1, 10**values.type.scale)
    else:
        limbs = _limbs(np.asarray(values.cast(pa.int64())), 4)
        unit = Fraction(1)
    ((total, of_squares),) = _grouped(limbs, np.zeros(1, dtype=np.int64), squares=squares)
    return total * unit, of_squares * unit * unit


def _of_doubles(numbers: Array, *, squares: bool) -> tuple[Fraction, Fraction]:
    """By exponent: numbers that have the same one are whole numbers of one unit."""
    fractions, exponents = np.frexp(numbers)
    order = np.argsort(exponents, kind="stable")
    exponents = exponents[order]
    mantissas = np.ldexp(fractions[order], _MANTISSA).astype(np.int64)
    starts = np.flatnonzero(np.diff(exponents, prepend=exponents[0] - 1))
    total = of_squares = Fraction(0)
    sums = _grouped(_limbs(mantissas, 4), starts, squares=squares)
    for exponent, (first, second) in zip(exponents[starts].tolist(), sums, strict=True):
        unit = Fraction(2) ** (exponent - _MANTISSA)
        total += first * unit
        of_squares += second * unit * unit
    return total, of_squares


def _limbs(numbers: Array, count: int) -> list[Array]:
    """Whole numbers of 64 bits, lowest limb first; only the highest has a sign."""
    limbs = []
    for _ in range(count - 1):
        limbs.append(numbers & ((1 << _LIMB) - 1))
        numbers = numbers >> _LIMB
    return [*limbs, numbers]


def _decimal_limbs(values: pa.Array) -> list[Array]:
    """Decimals of 128 bits: a lower half without a sign and an upper one with it."""
    halves = np.frombuffer(values.buffers()[1], dtype=np.int64).reshape(-1, 2)
    halves = halves[values.offset : values.offset + len(values)]
    lower = halves[:, 0].astype(np.uint64)
    low = [((lower >> np.uint64(_LIMB * part)) & np.uint64(0xFFFF)).astype(np.int64) for part in range(4)]
    return [*low, *_limbs(halves[:, 1], 4)]


def _grouped(limbs: list[Array], starts: Array, *, squares: bool) -> list[tuple[int, int]]:
    """The sums of each group of consecutive numbers; `starts` are the groups' first indices."""
    totals = [0] * len(starts)
    of_squares = [0] * len(starts)

    def add(to: list[int], parts: Array, shift: int) -> None:
        for group, part in enumerate(np.add.reduceat(parts, starts).tolist()):
            to[group] += part << shift

    for index, limb in enumerate(limbs):
        add(totals, limb, _LIMB * index)
        for other in range(index, len(limbs)) if squares else ():
            product = limb * limbs[other]
            add(of_squares, product, _LIMB * (index + other) + (other != index))
    return list(zip(totals, of_squares, strict=True))
