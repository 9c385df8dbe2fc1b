"""Exact sums and sums of squares.

A floating-point sum of doubles depends on the order of its terms, and so on the files and the engine. Here
numbers are added as integer multiples of a fixed unit, in limbs of 16 bits that numpy adds without overflow.
So a batch's sum does not depend on how the batch is divided.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]

_LIMB: Final = 16
_MANTISSA: Final = 53
_MAX_ROWS: Final = 1 << 24
"""The maximum number of rows per step: the sum of 2^24 products of two limbs fits into 64 bits."""


def power_sums(values: pa.Array, *, squares: bool) -> tuple[Fraction, Fraction]:
    """(sum, sum of squares) of integers, decimals or finite doubles without nulls.

    Args:
        values: the numbers.
        squares: whether to compute the sum of squares; otherwise it is 0.
    """
    total = square_sum = Fraction(0)
    for start in range(0, len(values), _MAX_ROWS):
        first, second = _part_sums(values.slice(start, _MAX_ROWS), squares=squares)
        total += first
        square_sum += second
    return total, square_sum


def _part_sums(values: pa.Array, *, squares: bool) -> tuple[Fraction, Fraction]:
    if pa.types.is_floating(values.type):
        return _double_sums(np.asarray(values.cast(pa.float64())), squares=squares)
    if pa.types.is_decimal(values.type):
        limbs = _decimal_limbs(values)
        unit = Fraction(1, 10**values.type.scale)
    else:
        limbs = _limbs(np.asarray(values.cast(pa.int64())), 4)
        unit = Fraction(1)
    ((total, square_sum),) = _group_sums(limbs, np.zeros(1, dtype=np.int64), squares=squares)
    return total * unit, square_sum * unit * unit


def _double_sums(numbers: Array, *, squares: bool) -> tuple[Fraction, Fraction]:
    """Sum the doubles per exponent: doubles with the same exponent are integer multiples of one unit."""
    fractions, exponents = np.frexp(numbers)
    order = np.argsort(exponents, kind="stable")
    exponents = exponents[order]
    mantissas = np.ldexp(fractions[order], _MANTISSA).astype(np.int64)
    starts = np.flatnonzero(np.diff(exponents, prepend=exponents[0] - 1))
    total = square_sum = Fraction(0)
    sums = _group_sums(_limbs(mantissas, 4), starts, squares=squares)
    for exponent, (first, second) in zip(exponents[starts].tolist(), sums, strict=True):
        unit = Fraction(2) ** (exponent - _MANTISSA)
        total += first * unit
        square_sum += second * unit * unit
    return total, square_sum


def _limbs(numbers: Array, count: int) -> list[Array]:
    """64-bit integers as `count` limbs of 16 bits, lowest limb first. Only the highest limb is signed."""
    limbs = []
    for _ in range(count - 1):
        limbs.append(numbers & ((1 << _LIMB) - 1))
        numbers = numbers >> _LIMB
    return [*limbs, numbers]


def _decimal_limbs(values: pa.Array) -> list[Array]:
    """128-bit decimals as limbs of 16 bits: an unsigned lower half and a signed upper half."""
    halves = np.frombuffer(values.buffers()[1], dtype=np.int64).reshape(-1, 2)
    halves = halves[values.offset : values.offset + len(values)]
    lower = halves[:, 0].astype(np.uint64)
    low = [((lower >> np.uint64(_LIMB * part)) & np.uint64(0xFFFF)).astype(np.int64) for part in range(4)]
    return [*low, *_limbs(halves[:, 1], 4)]


def _group_sums(limbs: list[Array], starts: Array, *, squares: bool) -> list[tuple[int, int]]:
    """The sum and sum of squares of each group of numbers; `starts` are the groups' first indexes."""
    totals = [0] * len(starts)
    square_sum = [0] * len(starts)

    def add(to: list[int], parts: Array, shift: int) -> None:
        for group, part in enumerate(np.add.reduceat(parts, starts).tolist()):
            to[group] += part << shift

    for index, limb in enumerate(limbs):
        add(totals, limb, _LIMB * index)
        for other in range(index, len(limbs)) if squares else ():
            product = limb * limbs[other]
            add(square_sum, product, _LIMB * (index + other) + (other != index))
    return list(zip(totals, square_sum, strict=True))
