"""Corrections of the bounds of other writers, which may lie inside of the values that they should enclose.

Statistics are written as strings, and engines lose digits in the conversion. This module undoes the known
losses by moving bounds outwards.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Writers truncate timestamps to milliseconds, so a maximum may be too small by less than one.
_TRUNCATION = dt.timedelta(milliseconds=1)
# Zone offsets are written in minutes. Until 1972, when the last zone changed to whole minutes, some offsets
# had seconds. A string with an offset, even an offset of zero, may therefore be wrong by up to a minute.
_WHOLE_MINUTES = dt.datetime(1972, 2, 1)
_MINUTE = dt.timedelta(minutes=1)
# deltalake writes decimals as doubles, after up to three roundings.
_EXACT_DIGITS = 15
_SLACK_BITS = 47
_ABOVE, _BELOW = Decimal("1.000000000000004"), Decimal("0.999999999999996")
# delta-spark once ended a truncated maximum with this character, which is above all others in UTF-16 code
# units. In UTF-8 order, characters of two UTF-16 code units are greater.
_OLD_TIE_BREAKER = "\ufffd"


def outer_timestamps(values: pa.Array, *, maximum: bool) -> pa.Array:
    """Bounds of timestamps, moved outwards."""
    kind = values.type
    minute = pa.scalar(_MINUTE, pa.duration("us"))
    old = pc.less(
        values, pa.scalar(_WHOLE_MINUTES if kind.tz is None else _WHOLE_MINUTES.replace(tzinfo=dt.UTC), kind)
    )
    if maximum:
        values = pc.add(values, pa.scalar(_TRUNCATION, pa.duration("us")))
    if kind.tz is None or not pc.any(old).as_py():
        return values
    return pc.if_else(old, (pc.add if maximum else pc.subtract)(values, minute), values)


def outer_decimals(values: pa.Array, *, maximum: bool) -> pa.Array:
    """Bounds of decimals with more digits than a double, moved outwards."""
    if values.type.precision <= _EXACT_DIGITS or values.null_count == len(values):
        return values
    moved = _outer_words(values, maximum=maximum)
    return _outer_wide(values, maximum=maximum) if moved is None else moved


def _outer_words(values: pa.Array, *, maximum: bool) -> pa.Array | None:
    """As `_outer_wide`, but far faster; None in the rare case that a value needs more than 62 bits."""
    kind = values.type
    words = np.frombuffer(values.buffers()[1], np.int64)
    pairs = words[2 * values.offset : 2 * (values.offset + len(values))]
    low, high = pairs[0::2], pairs[1::2]
    known = values.is_valid().to_numpy(zero_copy_only=False)
    if not np.all(~known | ((high == low >> 63) & (low > -(1 << 62)) & (low < 1 << 62))):
        return None
    low = np.where(known, low, 0)
    # Values with fewer bits than this convert to a double and back without loss.
    margin = (np.abs(low) >> _SLACK_BITS) + (np.abs(low) >= 1 << _SLACK_BITS)
    # 62 bits and the margin have 19 digits.
    limit = min(10**kind.precision, 1 << 63) - 1
    moved = np.clip(low + margin if maximum else low - margin, -limit, limit)
    moved_words = np.stack([moved, moved >> 63], axis=1)
    return pa.Array.from_buffers(
        kind, len(values), [pa.array(known).buffers()[1], pa.py_buffer(moved_words.tobytes())]
    )


def _outer_wide(values: pa.Array, *, maximum: bool) -> pa.Array:
    kind = values.type
    wide = pc.cast(values, pa.decimal256(kind.precision, kind.scale))
    positive = pc.greater_equal(wide, pa.scalar(Decimal(0), wide.type))
    outwards = pa.decimal256(17, 15)
    factors = pc.if_else(
        positive if maximum else pc.invert(positive),
        pa.scalar(_ABOVE, outwards),
        pa.scalar(_BELOW, outwards),
    )
    moved = pc.round(pc.multiply(wide, factors), kind.scale, "up" if maximum else "down")
    moved = pc.cast(moved, pa.decimal256(76 - 15, kind.scale))
    # Built from digits: arithmetic on Python's decimals would round to 28 digits.
    edge = pa.scalar(Decimal((0 if maximum else 1, (9,) * kind.precision, -kind.scale)), moved.type)
    beyond = (pc.greater if maximum else pc.less)(moved, edge)
    return pc.cast(pc.if_else(beyond, edge, moved), kind)


def outer_strings(values: pa.Array) -> pa.Array:
    """Maximums of strings, moved outwards where they were truncated."""
    cut = pc.ends_with(values, _OLD_TIE_BREAKER)
    if not pc.any(cut).as_py():
        return values
    return pa.array(
        [
            next_prefix(_whole(value[:-1]))
            if value is not None and value.endswith(_OLD_TIE_BREAKER)
            else value
            for value in values.to_pylist()
        ],
        values.type,
    )


def _whole(cut: str) -> str:
    # When Java truncates in the middle of a character beyond U+FFFF, it writes a question mark for the half.
    return cut[:-1] if cut.endswith("?") else cut


def next_prefix(prefix: str) -> str | None:
    """The least string above all strings with the prefix; None where no such string exists."""
    for position in reversed(range(len(prefix))):
        code = ord(prefix[position]) + 1
        code = 0xE000 if 0xD800 <= code < 0xE000 else code
        if code <= 0x10FFFF:
            return prefix[:position] + chr(code)
    return None
