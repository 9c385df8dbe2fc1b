"""Packages that cannot be imported, as if they were not installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class AbsentPackages(MetaPathFinder):
    """Refuses the import of some packages. `sys.modules[name] = None` would mislead pyarrow."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def install(self) -> None:
        """Refuse the packages from now on; none of them may be imported already."""
        assert not self._names & sys.modules.keys()
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
