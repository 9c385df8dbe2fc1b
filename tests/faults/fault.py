"""What a named fault is: one guarantee of the protocol taken out of the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Mutate = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gets the original function and returns the faulty one, which may call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A mistake that somebody could make, applied by the name of a function.

    Nothing here imports the library: a process reads the faults before it imports what they change.

    Attributes:
        name: what goes wrong.
        guarantee: what no longer holds.
        target: the function, as `package.module:Class.method`.
        mutate: makes the faulty function; what it needs of the library it imports when it is called.
        killer: a file, a class or a test that passes without the fault and fails with it.
        area: the area of `.ci/run` that runs the killer.
    """

    name: str
    guarantee: str
    target: str
    mutate: Mutate
    killer: str
    area: str = "test"


def returns(value: Any) -> Mutate:
    """A function that does nothing and returns the same value each time."""

    def mutate(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: value

    return mutate
