"""How much memory a worker of a test run takes: freed between files, printed at the end, limited."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource
import sys
from pathlib import Path

import pyarrow as pa

MOST_BYTES = 1_536 << 20
"""One worker takes at most so much."""

_STEP = 128 << 20
_free_above = 800 << 20
_NOW = Path("/proc/self/statm")


def free_what_is_left() -> None:
    """Give memory back that earlier tests are done with, once there is much of it.

    Looking through a gigabyte takes half a second, so it happens again only after much more has come.
    """
    global _free_above
    if _bytes_now() < _free_above:
        return
    gc.collect()
    pa.default_memory_pool().release_unused()
    _return_to_system()
    _free_above = _bytes_now() + _STEP


def keep_what_is_there() -> None:
    """Take what exists now out of all later collections: modules and thousands of tests live to the end."""
    gc.collect()
    gc.freeze()
    _return_to_system()


def peak_bytes() -> int:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def steepest(seen: list[tuple[str, int]]) -> str:
    """What raised the peak most: of pairs of a file and the peak after it, in order."""
    rises = {
        name: peak - before
        for (name, peak), (_, before) in zip(seen[1:], seen[:-1], strict=True)
        if peak > before
    }
    top = sorted(rises, key=lambda name: -rises[name])[:3]
    return ", ".join(f"+{rises[name] >> 20} in {name}" for name in top)


def too_much(peaks: dict[str, int]) -> list[str]:
    """A line for each worker above the limit."""
    return [
        f"{worker} took {peak >> 20} MiB; a worker takes at most {MOST_BYTES >> 20} MiB"
        for worker, peak in peaks.items()
        if peak > MOST_BYTES
    ]


def _return_to_system() -> None:
    """Without this, glibc keeps what was freed between blocks that are in use."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _bytes_now() -> int:
    try:
        pages = int(_NOW.read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()
