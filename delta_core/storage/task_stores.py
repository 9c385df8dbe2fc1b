"""The caller's own store for tasks that run in the caller's process.

A task is JSON and holds the table's URI, never credentials. In another process, such as a Spark executor's,
it opens the table with that process's own credentials; in the caller's it uses the store that the caller
has open, with its options and its cache.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store

_lock = threading.Lock()
_lent: dict[str, list[LogStore]] = {}


@contextmanager
def lend_to_tasks(*stores: LogStore) -> Iterator[None]:
    """While the context lasts, `task_store` gives these stores for their URIs, in any thread.

    Of several with one URI it gives the last.
    """
    with _lock:
        for store in stores:
            _lent.setdefault(store.uri, []).append(store)
    try:
        yield
    finally:
        with _lock:
            for store in stores:
                task_stores = _lent[store.uri]
                task_stores.remove(store)
                if not task_stores:
                    del _lent[store.uri]


def task_store(uri: str) -> LogStore:
    """The store of a task's table: the caller's own in its process, else one opened by the URI alone.

    Raises:
        InvalidUriError: no store serves the URI's scheme.
    """
    with _lock:
        stores = _lent.get(uri)
        if stores:
            return stores[-1]
    return open_store(uri)


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
