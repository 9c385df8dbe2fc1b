"""The system calls below one directory as moments, for what a store does within one of its calls.

Nothing is listed by name that is to be watched: every function of the `os` module that takes a path or a
descriptor below the directory is, unless it only looks. A write is carried out in halves with a moment in
between, as the disk may do it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.concurrency.kill_points.steps import Steps

_ONLY_LOOK = frozenset(
    {
        *("stat", "lstat", "fstat", "statvfs", "fstatvfs", "access", "readlink", "scandir", "listdir"),
        *("read", "pread", "lseek", "close", "dup", "dup2", "get_inheritable", "set_inheritable", "isatty"),
        *("fspath", "fsencode", "chdir", "fchdir", "putenv", "unsetenv", "system", "kill", "fork", "_exit"),
    }
)

_MAKES = os.O_CREAT | os.O_TRUNC

Synced = Callable[[int], None]


def watched_names() -> tuple[str, ...]:
    """The functions of the operating system that may change a file."""
    return tuple(
        name
        for name in dir(os)
        if getattr(getattr(os, name), "__module__", "") == "posix"
        and callable(getattr(os, name))
        and not isinstance(getattr(os, name), type)
        and name not in _ONLY_LOOK
    )


def step_through_system_calls(root: Path, steps: Steps, *, synced: Synced = lambda descriptor: None) -> None:
    """Make each one two moments, for the rest of the process.

    Args:
        root: the directory.
        synced: called after each successful fsync of something below it, with the descriptor.
    """
    below = Below(root)
    for name in watched_names():
        setattr(os, name, _stepped(name, getattr(os, name), below, steps, synced))


class Below:
    """Finds out what a call is about."""

    def __init__(self, root: Path) -> None:
        self._root = str(root.resolve())

    def name(self, args: tuple[Any, ...], options: dict[str, Any]) -> str | None:
        """The paths below the directory that the arguments name, or None."""
        found = []
        for position, argument in enumerate(args[:2]):
            path = self._path(argument, position, options)
            if path is not None and (path == self._root or path.startswith(f"{self._root}/")):
                found.append(path.removeprefix(self._root).lstrip("/") or ".")
        return " -> ".join(found) or None

    def _path(self, argument: object, position: int, options: dict[str, Any]) -> str | None:
        if isinstance(argument, int) and not isinstance(argument, bool):
            return _of_descriptor(argument) if position == 0 else None
        if not isinstance(argument, str | os.PathLike):
            return None
        path = os.fspath(argument)
        directory = options.get("dir_fd")
        if directory is not None and not os.path.isabs(path):
            path = f"{_of_descriptor(directory)}/{path}"
        return path


def _of_descriptor(descriptor: int) -> str | None:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def _stepped(
    name: str, original: Callable[..., Any], below: Below, steps: Steps, synced: Synced
) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        about = below.name(args, options)
        if about is None or (name == "open" and not args[1] & _MAKES):
            return original(*args, **options)
        steps(f"before {name}", about)
        if name == "write":
            written = _write_in_halves(original, args[0], args[1], lambda: steps("halfway in write", about))
        else:
            written = original(*args, **options)
        if name in ("fsync", "fdatasync"):
            synced(args[0])
        steps(f"after {name}", about)
        return written

    return call


def _write_in_halves(
    write: Callable[[int, memoryview], int], descriptor: int, data: Any, between: Callable[[], None]
) -> int:
    view = memoryview(data)
    done = write(descriptor, view[: len(view) // 2])
    between()
    return done + write(descriptor, view[done:])
