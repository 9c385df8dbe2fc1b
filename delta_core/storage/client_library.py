"""obstore in forked processes.

obstore runs its requests in threads that it starts once. A forked process does not have these threads, so a
request there would wait for ever. A copy of the library that the forked process loads starts its own
threads.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import obstore  # noqa: F401 - so that its library is loaded

from delta_core.errors import StorageError
from delta_core.forks import ForkSafeLock

_EXTENSION = "obstore._obstore"
_FILE = str(sys.modules[_EXTENSION].__file__)

_lock = ForkSafeLock()
_process = os.getpid()
# Discarded objects would also wait for the parent's threads, so they are kept.
_of_parents: list[dict[str, Any]] = []


def require_own_library() -> None:
    """In a forked process, replace the contents of obstore's modules with those of a new copy.

    Look up names in the modules (`obstore.get`, `obstore.store.S3Store`) at each use; do not keep them.
    Cost: nothing in the process that imported obstore; in another process about 30 ms and 15 MB of memory,
    once.

    Raises:
        StorageError: the copy cannot be loaded.
    """
    global _process
    if _process == os.getpid():
        return
    with _lock.held():
        if _process == os.getpid():
            return
        modules = {name: sys.modules[name] for name in list(sys.modules) if _is_obstores(name)}
        _of_parents.append({name: dict(vars(module)) for name, module in modules.items()})
        try:
            _load_again(list(modules))
        except (ImportError, OSError) as error:
            sys.modules.update(modules)
            raise StorageError(
                "A forked process cannot use an object store that its parent has used.",
                cause=f"A copy of the client library could not be loaded: {error}",
                fix='Start processes with the method "spawn" or "forkserver".',
            ) from error
        for name, module in modules.items():
            vars(module).update(vars(sys.modules[name]))
            sys.modules[name] = module
        _process = os.getpid()


def _load_again(names: list[str]) -> None:
    for name in names:
        del sys.modules[name]
    with _copy_of(_FILE) as path:
        loader = importlib.machinery.ExtensionFileLoader(_EXTENSION, path)
        finder = _Finder(importlib.util.spec_from_loader(_EXTENSION, loader))
        sys.meta_path.insert(0, finder)
        try:
            for name in ("obstore", *names):
                importlib.import_module(name)
        finally:
            sys.meta_path.remove(finder)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, spec: importlib.machinery.ModuleSpec | None) -> None:
        self._spec = spec

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return self._spec if name == _EXTENSION else None


@contextmanager
def _copy_of(file: str) -> Iterator[str]:
    """A path at which no library is loaded yet: the loader does not load the same path twice."""
    if hasattr(os, "memfd_create"):
        # Some temporary directories are mounted without permission to execute.
        copy = os.memfd_create("obstore", os.MFD_CLOEXEC)
        path = f"/proc/{os.getpid()}/fd/{copy}"
        try:
            shutil.copyfile(file, path)
            yield path
        finally:
            os.close(copy)
        return
    with tempfile.TemporaryDirectory(prefix="deltaward-") as folder:
        path = os.path.join(folder, f"{os.getpid()}-{os.path.basename(file)}")
        shutil.copyfile(file, path)
        yield path


def _is_obstores(name: str) -> bool:
    return name == "obstore" or name.startswith("obstore.")
