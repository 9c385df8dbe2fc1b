"""Puts a named fault into this process, or into the module that has its function once that is imported.

The function's code object is exchanged for one that calls the faulty function. So what was imported by name,
bound, decorated or put into a slotted dataclass is faulty as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tests.faults.fault import Fault
from tests.support.mutation.code_swap import Target, resolve

_MARK = "the faulty function stands here"


class FaultGone(Exception):  # noqa: N818 - what happened to the fault
    """The function that a fault changes is no longer there, or the fault leaves it as it is."""


def put_in(fault: Fault) -> None:
    """Apply a fault for the rest of this process; imports the module of its function.

    Raises:
        FaultGone: there is no such function, or nothing changes.
    """
    target = Target.parse(fault.target)
    try:
        module = importlib.import_module(target.module)
    except ModuleNotFoundError as error:
        raise FaultGone(f"{fault.name}: {target}: {error}") from error
    change(fault, module)


def change(fault: Fault, module: ModuleType) -> None:
    """As `put_in`, in the module of its function."""
    target = Target.parse(fault.target)
    function = resolve(module, target.function)
    if function is None:
        raise FaultGone(f"{fault.name}: {target}: there is no such function")
    original = _copy(function)
    faulty = fault.mutate(original)
    if faulty is original:
        raise FaultGone(f"{fault.name}: {target}: nothing changes")
    function.__code__ = _calling(faulty, function.__code__.co_freevars)
    # The original has its own; a function of any arguments has none.
    function.__defaults__ = function.__kwdefaults__ = None


def put_in_when_imported(fault: Fault, then: Callable[[], object] = lambda: None) -> None:
    """Apply a fault as soon as the module of its function is imported, at once if it is already.

    Args:
        fault: the fault; of the library nothing is imported now.
        then: called when the fault is in.
    """
    name = Target.parse(fault.target).module
    if name in sys.modules:
        change(fault, sys.modules[name])
        then()
    else:
        sys.meta_path.insert(0, _Finder(fault, name, then))


class _Finder(MetaPathFinder):
    """Finds one module by means of the other finders, and changes it when it has been executed."""

    def __init__(self, fault: Fault, name: str, then: Callable[[], object]) -> None:
        self._fault = fault
        self._name = name
        self._then = then
        self._is_looking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name or self._is_looking:
            return None
        self._is_looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_looking = False
        if spec is not None and spec.loader is not None:
            # On the loader of this one module: its class, which others ask for, stays what it is.
            execute = partial(self._execute, spec.loader.exec_module)
            spec.loader.exec_module = execute  # type: ignore[method-assign]
        return spec

    def _execute(self, really: Callable[[ModuleType], None], module: ModuleType) -> None:
        really(module)
        change(self._fault, module)
        self._then()


def _copy(function: FunctionType) -> FunctionType:
    made = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def _calling(faulty: Callable[..., Any], free: Sequence[str]) -> CodeType:
    """Code that calls a function; it has the free variables that the code in its place must have."""
    names = "".join(f"    {name} = None\n" for name in free)
    used = "".join(f"        {name}\n" for name in free)
    source = (
        f"def outer():\n{names}"
        f"    def detour(*args, **kwargs):\n{used}"
        f"        faulty = {_MARK!r}\n"
        f"        return faulty(*args, **kwargs)\n"
        f"    return detour\n"
    )
    found: dict[str, Any] = {}
    exec(source, found)
    code: CodeType = found["outer"]().__code__
    # A constant needs no name, which the function's module would have to have.
    constants = tuple(faulty if one == _MARK else one for one in code.co_consts)
    return code.replace(co_consts=constants)
