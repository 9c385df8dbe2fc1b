"""Hilbert's curve: from the range ids of several columns to one key whose neighbours are neighbours in all.

Skilling's algorithm ("Programming the Hilbert curve", 2004), a vector of rows at a time. Unlike the Z-curve
it never jumps: rows with consecutive keys differ by one in one column, so files' bounds are closer together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint64]


def hilbert_axes(ids: Sequence[Ids], bits: int) -> list[Ids]:
    """The numbers whose interleaved bits, the first one's before the others', are the keys on the curve.

    Args:
        ids: a number for each row and column, below `2 ** bits`. They are left as they are.
        bits: of each number; at least 1.
    """
    axes = [np.array(column, np.uint64) for column in ids]
    _turn(axes, bits)
    for index in range(1, len(axes)):
        axes[index] ^= axes[index - 1]
    flips = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, 0, -1):
        flips ^= _where(axes[-1], bit, _ones(bit))
    for axis in axes:
        axis ^= flips
    return axes


def _turn(axes: Sequence[Ids], bits: int) -> None:
    """Undo the turns and reflections of the cells that a row lies in, from the largest cell down."""
    first = axes[0]
    for bit in range(bits - 1, 0, -1):
        low = _ones(bit)
        for axis in axes:
            reflected = _where(axis, bit, low)
            first ^= reflected
            if axis is first:
                continue
            swapped = (first ^ axis) & low & ~reflected
            first ^= swapped
            axis ^= swapped


def _ones(count: int) -> np.uint64:
    return np.uint64((1 << count) - 1)


def _where(axis: Ids, bit: int, mask: np.uint64) -> Ids:
    """The mask in rows that have the bit, zero in others."""
    chosen: Ids = ((axis >> np.uint64(bit)) & np.uint64(1)) * mask
    return chosen
