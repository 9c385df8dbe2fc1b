"""How many requests this process has sent to stores, and how many bytes it moved.

Every store counts here where it asks its service, so that nothing on the way has to pass a counter on. The
totals are of the whole process, as its processor time is: of two jobs at a time, each sees both.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from delta_core.forks import renew_lock_in_children


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTotals:
    """Since the process began.

    Attributes:
        requests: to object stores and HDFS one for each HTTP request; of a local disk one for each object
            that was opened, written, inspected or deleted, and for each directory that was listed.
        bytes_read: what arrived; of a local file that was opened, its size.
        bytes_written: what was sent, or written to the local disk.
    """

    requests: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


class RequestMeter:
    """Adds up; for threads."""

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
        """What was counted so far."""
        with self._lock:
            return RequestTotals(
                requests=self._requests,
                bytes_read=self._bytes_read,
                bytes_written=self._bytes_written,
            )


METER: Final = RequestMeter()
"""The process's."""
