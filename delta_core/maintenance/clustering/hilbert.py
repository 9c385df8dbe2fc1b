"""The Hilbert curve: maps the range ids of several columns to one key.

Skilling's algorithm ("Programming the Hilbert curve", 2004), for many rows at a time with numpy. Unlike the
Z-curve the Hilbert curve has no jumps: cells with consecutive keys differ by one in one column. Files
therefore have narrower minimum and maximum values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint64]


def hilbert_axes(ids: Sequence[Ids], bits: int) -> list[Ids]:
    """The numbers whose interleaved bits, the first column's first, are the keys on the curve.

    Args:
        ids: for each column, a number per row, below `2 ** bits`. The arrays are not modified.
        bits: number of bits of each number; at least 1.
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
    """Undo the rotations and reflections of the cells that contain a row, from the largest cell down."""
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
    """The mask for rows that have the bit set, zero for the other rows."""
    chosen: Ids = ((axis >> np.uint64(bit)) & np.uint64(1)) * mask
    return chosen
