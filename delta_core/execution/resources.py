"""The resources that this process has used since it started."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass, field

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.storage.request_meter import METER, RequestTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUsage:
    """CPU time of this process and its ended children, the clock, the peak of memory, and requests.

    `store` counts the requests of this process to stores, not those of its children. `peak_rss_bytes` is the
    highest value since the process started, so a later job in the same process never shows less than an
    earlier one.
    """

    cpu_seconds: float
    monotonic_seconds: float
    peak_rss_bytes: int
    store: RequestTotals = field(default_factory=RequestTotals)


def resource_usage(*, clock: Clock = SYSTEM_CLOCK) -> ResourceUsage:
    """The resources that this process has used from its start until now."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    # Linux counts in KiB, macOS in bytes.
    unit_bytes = 1 if sys.platform == "darwin" else 1024
    return ResourceUsage(
        cpu_seconds=own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        monotonic_seconds=clock.monotonic_seconds(),
        peak_rss_bytes=max(own.ru_maxrss, children.ru_maxrss) * unit_bytes,
        store=METER.totals(),
    )
