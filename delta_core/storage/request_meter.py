"""Counters of the requests of this process to stores, and of the bytes that were transferred.

Every store counts where it sends a request, so callers pass no counters. The totals are those of the whole
process, like its CPU time: two jobs at the same time each see both.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from delta_core.forks import renew_lock_in_children


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTotals:
    """The totals since the process started.

    Attributes:
        requests: for object stores and HDFS the number of HTTP requests; for a local disk one for each object
            that was opened, written, inspected or deleted, and for each directory that was listed.
        bytes_read: the received bytes; for an opened local file, its size.
        bytes_written: the bytes that were sent or written to the local disk.
    """

    requests: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


class RequestMeter:
    """Thread-safe counters of requests and transferred bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._requests = self._bytes_read = self._bytes_written = 0

    def count(self, requests: int = 1, *, bytes_read: int = 0, bytes_written: int = 0) -> None:
        """Add requests, and the bytes that they moved."""
        with self._lock:
            self._requests += requests
            self._bytes_read += bytes_read
            self._bytes_written += bytes_written

    def totals(self) -> RequestTotals:
        """The totals since the process started."""
        with self._lock:
            return RequestTotals(
                requests=self._requests,
                bytes_read=self._bytes_read,
                bytes_written=self._bytes_written,
            )


METER: Final = RequestMeter()
"""The meter of this process."""
