"""Public names of a package that load on first use (PEP 562), so that importing the package is cheap."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def on_demand(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package whose names load on first use.

    The package imports the same names under `if TYPE_CHECKING:` and calls this function in the `else:`
    branch. Otherwise a type checker would see `__getattr__` and accept any name as a name of the package. The
    first use of `package.name` loads the module that defines the name. So does `from package import name`.

    Args:
        package: the package's `__name__`.
        names: the module that defines each public name, by name. A name may also be that of its module.
    """

    class Package(ModuleType):
        """The package. An import of a submodule does not hide the public name that is called the same."""

        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and names.get(name) == value.__name__:
                value = getattr(value, name)
            super().__setattr__(name, value)

    sys.modules[package].__class__ = Package

    def load(name: str) -> Any:
        module = names.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(imported(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(names), sorted(names)


def imported(module: str) -> ModuleType:
    """Import a module after the packages that contain it.

    An import holds the lock of a module while it imports the package around it. A thread that imports that
    package at the same time, which imports the module itself, would wait for it, and one of both would fail.
    """
    parts = module.split(".")
    for end in range(1, len(parts)):
        importlib.import_module(".".join(parts[:end]))
    return importlib.import_module(module)
