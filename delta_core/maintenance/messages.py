"""Formatting of numbers for messages."""

from __future__ import annotations


def size(count: int | None) -> str:
    """A number of bytes with a readable unit, such as `1.5 MiB`; `?` for None."""
    if count is None:
        return "?"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the singular for 1 and otherwise with `s`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
