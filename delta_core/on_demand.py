"""Public names of a package that load on first use (PEP 562): importing the package costs next to nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def on_demand(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names load on first use.

    The package imports the same names under `TYPE_CHECKING` and calls this in its `else`: a type checker that
    saw `__getattr__` would take any name for one of the package. A caller reads a name through the package
    when it needs it (`maintenance.plan_vacuum(...)`); `from package import name` loads it at once.

    Args:
        package: the package's `__name__`.
        names: the module that defines each public name.
    """

    def load(name: str) -> Any:
        module = names.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(names)
