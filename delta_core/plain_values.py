"""Plain Python values: conversion of NumPy scalars, and values as strings.

NumPy is not imported. Its scalars are recognised by their `dtype` and converted with `item()`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """The value, with a NumPy scalar converted to the Python type."""
    if type(value).__module__ != "numpy" or getattr(value, "shape", None) != ():
        return value
    if value.dtype.kind not in "mM":
        return value.item()
    # Python has no time type with nanoseconds; item() returns an integer for it.
    coarser = value.astype(value.dtype.name.replace("[ns]", "[us]"))
    own = coarser.item()
    return value if isinstance(own, int) or (own is not None and coarser != value) else own


def value_string(value: object) -> str | None:
    """The string form of a setting's value: strings, booleans and numbers; None for other values.

    NaN and infinity are not valid values of a setting and give None.
    """
    value = plain(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        try:
            return str(int(value))
        except ValueError:  # more digits than Python converts to a string
            return None
    if isinstance(value, float | Decimal) and math.isfinite(value):
        return f"{value:f}" if isinstance(value, Decimal) else repr(float(value))
    return None
