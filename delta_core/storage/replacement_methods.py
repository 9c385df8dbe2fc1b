"""Methods that replace several calls of other methods of the same store by one call.

Not every store has such methods. A class derived from a store may change the methods that they replace: a
subclass that hides objects from `walk`, a test in which `delete` fails. Each such method is therefore marked
with the methods that it replaces, and is used only while the store has exactly those methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])
_MARK = "__in_place_of__"


def in_place_of(*methods: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Mark a method as a replacement for other methods of its class."""

    def mark(method: _Method) -> _Method:
        setattr(method, _MARK, methods)
        return method

    return mark


def stand_in(store: object, name: str) -> Callable[..., Any] | None:
    """A store's method with this name, if the methods that it replaces are unchanged; else None."""
    kind = type(store)
    methods: tuple[Callable[..., Any], ...] = getattr(getattr(kind, name, None), _MARK, ())
    own = getattr(store, "__dict__", {})
    if not methods or name in own:
        return None
    if any(getattr(kind, m.__name__, None) is not m or m.__name__ in own for m in methods):
        return None
    method: Callable[..., Any] = getattr(store, name)
    return method
