"""Plain values as a Python program has them: scalars of NumPy for Python's own, and values as texts.

NumPy is not imported: its scalars are told by their `dtype` and give Python's own with `item()`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """The value, or what Python has for it where it is a scalar of NumPy."""
    if type(value).__module__ != "numpy" or getattr(value, "shape", None) != ():
        return value
    if value.dtype.kind not in "mM":
        return value.item()
    # Python has no time of nanoseconds, which item() makes a number of.
    coarser = value.astype(value.dtype.name.replace("[ns]", "[us]"))
    own = coarser.item()
    return value if isinstance(own, int) or (own is not None and coarser != value) else own


def value_string(value: object) -> str | None:
    """How a setting writes a value: texts as they are, true and false, and numbers; None for all else.

    A number that is none, or infinite, is no value of a setting.
    """
    value = plain(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        try:
            return str(int(value))
        except ValueError:  # more digits than Python writes
            return None
    if isinstance(value, float | Decimal) and math.isfinite(value):
        return f"{value:f}" if isinstance(value, Decimal) else repr(float(value))
    return None
