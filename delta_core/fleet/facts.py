"""Facts about a version that maintenance rules do not need, but a score and a report do. No request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final, Self

import numpy as np
import pyarrow.compute as pc

from delta_core.log.listing import LogListing
from delta_core.snapshot.snapshot import Snapshot

BUCKETS: Final = 16
"""Number of buckets of the size histogram."""

_FIRST_POWER: Final = 16
_HOURS_OF_WEEK: Final = 168
_NUM_RECORDS: Final = r'"numRecords"\s*:\s*(?P<rows>\d+)'


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutFacts:
    """Facts about the live files and the log of one version.

    Attributes:
        histogram: number of live files by size, in 16 buckets. The first is for files below 64 KiB; each next
            one is for files up to twice as large; the last is for all larger ones, from 512 MiB.
        rows: rows in the files with statistics, deleted rows included.
        deleted_rows: rows that deletion vectors mark as deleted.
        files_without_statistics: live files without a number of rows.
        hours: number of commits in the log for each hour of the week, from Monday 00:00 UTC, by the time of
            the commit files.
        tail_since_ms: time of the first commit after the newest checkpoint; None without one.
    """

    histogram: tuple[int, ...]
    rows: int
    deleted_rows: int
    files_without_statistics: int
    hours: tuple[int, ...]
    tail_since_ms: int | None

    def to_json(self) -> dict[str, Any]:
        """The facts as a JSON object."""
        return {**asdict(self), "histogram": list(self.histogram), "hours": list(self.hours)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The facts that `to_json` wrote. Unknown fields are ignored."""
        known = {item.name: document[item.name] for item in fields(cls)}
        return cls(**{**known, "histogram": tuple(known["histogram"]), "hours": tuple(known["hours"])})


def layout_facts(snapshot: Snapshot, listing: LogListing) -> LayoutFacts:
    """Gather the facts from columns in memory.

    Args:
        snapshot: the version. Its live files are loaded when they are not.
        listing: the listing of its log.
    """
    columns = ["size_bytes", "stats", "deletion_vector"]
    live = snapshot.files.to_table(columns)
    rows = pc.struct_field(pc.extract_regex(live["stats"], _NUM_RECORDS), "rows").cast("int64")
    deleted = 0
    if live["deletion_vector"].null_count < live.num_rows:
        deleted = pc.sum(pc.struct_field(live["deletion_vector"], "cardinality")).as_py() or 0
    tail = snapshot.segment.commits
    return LayoutFacts(
        histogram=size_histogram(live["size_bytes"].to_numpy()),
        rows=int(pc.sum(rows).as_py() or 0),
        deleted_rows=int(deleted),
        files_without_statistics=rows.null_count,
        hours=hours_of_week([commit.info.modified_ms for commit in listing.commits]),
        tail_since_ms=tail[0].info.modified_ms if tail else None,
    )


def size_histogram(sizes: np.ndarray[Any, np.dtype[np.int64]]) -> tuple[int, ...]:
    """The number of sizes in each bucket; see `LayoutFacts.histogram`."""
    powers = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1] - 1
    buckets = np.clip(powers - _FIRST_POWER + 1, 0, BUCKETS - 1)
    return tuple(int(count) for count in np.bincount(buckets, minlength=BUCKETS))


def bucket_limits() -> tuple[int, ...]:
    """The smallest size in bytes that is too large for each bucket but the last."""
    return tuple(1 << (_FIRST_POWER + index) for index in range(BUCKETS - 1))


def hours_of_week(times_ms: list[int]) -> tuple[int, ...]:
    """The number of times in each hour of the week, from Monday 00:00 UTC."""
    # The epoch began on a Thursday.
    hours = (np.array(times_ms, dtype=np.int64) // 3_600_000 + 72) % _HOURS_OF_WEEK
    return tuple(int(count) for count in np.bincount(hours, minlength=_HOURS_OF_WEEK))


def hour_of_week(now_ms: int) -> int:
    """The hour of the week, from Monday 00:00 UTC."""
    now = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    return now.weekday() * 24 + now.hour
