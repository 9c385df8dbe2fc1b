"""Figures as people read them."""

from __future__ import annotations


def size(count: int | None) -> str:
    """Bytes in the unit that people read."""
    if count is None:
        return "?"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the singular for one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
