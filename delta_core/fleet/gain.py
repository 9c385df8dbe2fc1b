"""The gain of a verb: the bytes that the reads of a day do not read any more. Pure.

A file or a commit that a read need not open counts as four mebibytes, as in Spark's
`spark.sql.files.openCostInBytes`. What a vacuum frees is not read anyway; a byte that is not stored counts as
a thirtieth of a byte that is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

OPEN_COST_BYTES: Final = 4 << 20
"""The bytes that opening a file counts as."""

STORED_SHARE: Final = 1 / 30
"""The bytes that a stored byte counts as, a day."""

_UNORDERED_READ_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The effect of a verb on a table.

    Attributes:
        files: files to rewrite, to delete, or to describe in a checkpoint.
        size_bytes: bytes to rewrite or delete.
        gain: bytes that the reads of a day do not read any more.
    """

    files: int
    size_bytes: int
    gain: float


def work_of(
    verb: str, row: Mapping[str, Any], compaction: Mapping[str, int], *, reads_per_day: float
) -> Work:
    """The work and the gain of a verb.

    Args:
        verb: `optimize`, `cluster`, `checkpoint` or `vacuum`.
        row: the table's row of `fleet`.
        compaction: the predicted metrics of the compaction or clustering.
        reads_per_day: how often the table is read.
    """
    if verb == "optimize":
        return _rewrite(row, compaction, reads_per_day)
    if verb == "cluster":
        unordered = row["unclustered_bytes"] or 0
        rewritten = _rewrite(row, compaction, reads_per_day)
        return Work(
            files=max(rewritten.files, row["num_files"] or 0),
            size_bytes=max(rewritten.size_bytes, row["total_bytes"] or 0),
            gain=rewritten.gain + unordered * _UNORDERED_READ_SHARE * reads_per_day,
        )
    if verb == "checkpoint":
        gain = (row["log_tail_commits"] or 0) * OPEN_COST_BYTES * reads_per_day
        return Work(files=row["num_files"] or 0, size_bytes=0, gain=gain)
    expired = row["expired_tombstone_bytes"] or 0
    return Work(files=row["expired_tombstones"] or 0, size_bytes=expired, gain=expired * STORED_SHARE)


def _rewrite(row: Mapping[str, Any], compaction: Mapping[str, int], reads_per_day: float) -> Work:
    removed, size_bytes = compaction.get("files_removed", 0), compaction.get("bytes_removed", 0)
    fewer = max(0, removed - compaction.get("files_added", removed))
    deleted = 0.0
    if row["rows"] and row["total_bytes"]:
        share = size_bytes / row["total_bytes"]
        deleted = row["deleted_rows"] / row["rows"] * row["total_bytes"] * share
    return Work(
        files=removed, size_bytes=size_bytes, gain=(fewer * OPEN_COST_BYTES + deleted) * reads_per_day
    )
