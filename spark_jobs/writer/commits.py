"""The newest commits of this process, by table."""

from __future__ import annotations

from delta_core.boundary import public
from delta_core.forks import ForkSafeLock
from delta_core.storage import canonical_table_uri

_LOCK = ForkSafeLock()
_LAST: dict[str, int] = {}


@public
def last_commit(uri: str) -> int | None:
    """The newest version that this process has committed to the table, or None.

    Read at least this version to see your own writes. No request.
    """
    with _LOCK.held():
        return _LAST.get(canonical_table_uri(uri))


def record_commit(uri: str, version: int) -> None:
    """Record a version that this process has committed."""
    key = canonical_table_uri(uri)
    with _LOCK.held():
        _LAST[key] = max(version, _LAST.get(key, -1))
