"""Isolation levels: how strictly a transaction's reads are protected against concurrent commits."""

from __future__ import annotations

from enum import StrEnum


class IsolationLevel(StrEnum):
    """Isolation levels; the values are those of `commitInfo.isolationLevel` and `delta.isolationLevel`.

    SERIALIZABLE: the history equals the serial order of versions, for reads too.
    WRITE_SERIALIZABLE: blind appends may be ordered after a transaction that did not see them.
    SNAPSHOT_ISOLATION: only write-write conflicts are errors. It is used for commits that change no data.
    """

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"
