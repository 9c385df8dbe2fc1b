"""What `write` has committed, by table."""

from __future__ import annotations

import threading

from delta_core.boundary import public
from delta_core.storage.uri import canonical_table_uri

_LOCK = threading.Lock()
_LAST: dict[str, int] = {}


@public
def last_commit(uri: str) -> int | None:
    """The newest version that this process has committed to the table; None when it has not.

    That is what to read to see one's own writes, whatever others commit in between. No request.
    """
    with _LOCK:
        return _LAST.get(canonical_table_uri(uri))


def record_commit(uri: str, version: int) -> None:
    """Note a version that was committed from here."""
    key = canonical_table_uri(uri)
    with _LOCK:
        _LAST[key] = max(version, _LAST.get(key, -1))
