"""Locks in a forked process. A parent's thread may have held a lock at the fork."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_RLOCK = type(threading.RLock())
_owners: weakref.WeakSet[Any] = weakref.WeakSet()


def renew_lock_in_children(owner: object) -> None:
    """Give `owner` a new `_lock` of the same kind in each process that is forked from this one.

    The guarded data must be valid whenever no thread holds the lock, since the fork may happen at any
    moment.
    """
    _owners.add(owner)


class ForkSafeLock:
    """The lock of a module's data: free in each process that is forked from this one.

    See `renew_lock_in_children` for what the data must allow.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A context in which this thread holds the lock."""
        # A fork in the context replaces `_lock`; the statement releases the lock that it has acquired.
        with self._lock:
            yield


def _renew() -> None:
    for owner in list(_owners):
        owner._lock = threading.RLock() if isinstance(owner._lock, _RLOCK) else threading.Lock()


os.register_at_fork(after_in_child=_renew)
