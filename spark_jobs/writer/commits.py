"""The newest commits of this process, by table."""

from __future__ import annotations

from delta_core.boundary import public
from delta_core.forks import ForkSafeLock
from delta_core.jobs import JobResult
from delta_core.storage import canonical_table_uri

_LOCK = ForkSafeLock()
_LAST: dict[str, int] = {}
_RESULTS: dict[str, JobResult] = {}


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


@public
def last_result(uri: str) -> JobResult | None:
    """The result of this process's newest DELETE, UPDATE or MERGE of the table through `DeltaTable`, or None.

    These methods return what delta-spark's return. The result has every metric. No request.
    """
    with _LOCK.held():
        return _RESULTS.get(canonical_table_uri(uri))


def record_result(uri: str, result: JobResult) -> None:
    """Record the result of an operation on a table."""
    key = canonical_table_uri(uri)
    with _LOCK.held():
        _RESULTS[key] = result
