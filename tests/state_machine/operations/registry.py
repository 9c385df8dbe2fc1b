"""The operations: each is a function, and becomes a rule of the machine."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.state_machine.machine import TableMachine

Draw = Callable[..., Any]
Run = Callable[["TableMachine", Draw], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One kind of step.

    Attributes:
        run: does it to the table, and tells the model.
        possible: whether the table's state lets it make sense.
    """

    name: str
    run: Run
    possible: Callable[[TableMachine], bool]


_FOUND: list[Operation] = []


def operation(
    run: Run | None = None,
    *,
    when: Callable[[TableMachine], bool] = lambda _: True,
    of: tuple[type, str] | None = None,
) -> Any:
    """Take a function for an operation.

    Args:
        run: the function.
        when: whether a table's state lets it make sense.
        of: the method that it calls; while the library does not have it, there is no such operation.
    """

    def register(function: Run) -> Run:
        if of is None or hasattr(*of):
            _FOUND.append(Operation(name=function.__name__, run=function, possible=when))
        return function

    return register if run is None else register(run)


def _all() -> tuple[Operation, ...]:
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != "registry":
            importlib.import_module(f"tests.state_machine.operations.{path.stem}")
    return tuple(_FOUND)


OPERATIONS = _all()
"""Every operation of the modules beside this one."""
