"""Making many files durable at once: one flush of their file system, not one for each file and directory."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import weakref
from functools import cache
from typing import Any

MANY_FILES = 8
"""From so many files on, one flush of the whole file system is cheaper than one for each of them."""

_OLDEST_KERNEL = (5, 8)
"""Before it, syncfs(2) does not say when something could not be written."""


class FileSystemFlush:
    """Flushes the file system of a directory. To be made before what it is to make durable is written.

    A failure to write is told once to each descriptor that was open when it came about: another process may
    have been told of it, and one that is opened later is not.
    """

    def __init__(self, directory: str) -> None:
        """Raises OSError when there is no such directory."""
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)

    def flush(self) -> bool:
        """Make everything durable that any process wrote to the file system.

        Returns:
            False where the system cannot do that, or would not say when it failed; nothing was flushed then.

        Raises:
            OSError: something could not be written.
        """
        call = _syncfs()
        if call is None:
            return False
        call(self._descriptor)
        return True


@cache
def _syncfs() -> Any:
    if sys.platform != "linux":
        return None
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST_KERNEL:
        return None
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is not None:
        call.errcheck = _checked
    return call


def _checked(result: int, call: object, arguments: tuple[int]) -> int:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
