"""The part of the machine that a job may use: processors and memory."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_UNKNOWN_MEMORY_BYTES = 2 << 30


def available_cpus(*, cgroup: Path = _CGROUP) -> int:
    """Processors that this process may use: its affinity, limited by the control group quota. At least 1."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _words(cgroup / "cpu.max")
    if len(quota) == 2 and quota[0] != "max":
        count = min(count, max(1, int(quota[0]) // int(quota[1])))
    return max(1, count)


def available_memory_bytes(*, cgroup: Path = _CGROUP, meminfo: Path = _MEMINFO) -> int:
    """Memory that is still available, by the kernel's estimate and the control group's limit."""
    available = _UNKNOWN_MEMORY_BYTES
    for line in _string(meminfo).splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) << 10
    limit, used = _words(cgroup / "memory.max"), _words(cgroup / "memory.current")
    if limit and used and limit[0] != "max":
        available = min(available, max(0, int(limit[0]) - int(used[0])))
    return available


def workers_for(*, tasks: int, task_memory_bytes: int, memory_bytes: int, cpus: int) -> int:
    """How many tasks may run in parallel: one per processor, as long as their memory fits. At least 1."""
    fitting = memory_bytes // max(1, task_memory_bytes)
    return max(1, min(tasks, cpus, fitting))


def _string(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""


def _words(path: Path) -> list[str]:
    return _string(path).split()
