"""Methods that do in one call what others of the same store do object by object.

Not every store has them, and one that is made of another may change what they stand for: a subclass that
hides objects from `walk`, a test that lets `delete` fail. So such a method says which methods it does the
work of, and counts only where they are those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])
_MARK = "__in_place_of__"


def in_place_of(*methods: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Marks a method that does the work of others of its class."""

    def mark(method: _Method) -> _Method:
        setattr(method, _MARK, methods)
        return method

    return mark


def stand_in(store: object, name: str) -> Callable[..., Any] | None:
    """A store's method of that name, if it stands for what the store does otherwise; else None."""
    kind = type(store)
    methods: tuple[Callable[..., Any], ...] = getattr(getattr(kind, name, None), _MARK, ())
    own = getattr(store, "__dict__", {})
    if not methods or name in own:
        return None
    if any(getattr(kind, m.__name__, None) is not m or m.__name__ in own for m in methods):
        return None
    found: Callable[..., Any] = getattr(store, name)
    return found
