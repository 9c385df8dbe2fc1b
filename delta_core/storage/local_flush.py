"""Making many files durable at once: one flush of the file system instead of one per file and directory."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import weakref
from functools import cache
from typing import Any

MANY_FILES = 8
"""From this number of files on, one flush of the whole file system is cheaper than one flush per file."""

_OLDEST_KERNEL = (5, 8)
"""In older kernels syncfs(2) does not report write errors."""


class FileSystemFlush:
    """Flushes the file system of a directory. Create it before the files that it will flush are written.

    The kernel reports a write error once to each file descriptor that was open when the error occurred. A
    descriptor that is opened later does not see the error.
    """

    def __init__(self, directory: str) -> None:
        """Raises OSError when the directory does not exist."""
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)

    def flush(self) -> bool:
        """Make all data durable that any process wrote to the file system.

        Returns:
            False when the system has no such flush or does not report its errors; then nothing was flushed.

        Raises:
            OSError: some data could not be written.
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
    match = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if match is None or (int(match[1]), int(match[2])) < _OLDEST_KERNEL:
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
