"""The facts of the last observation of a table, so that the next one reads little more than the changes.

The caller stores an observation as JSON and passes it to the next observation. The table stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ConfigurationError
from delta_core.log.listing import LogListing, list_log
from delta_core.maintenance.observe.health import TableHealth
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore

_MOST_BUCKETS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiring:
    """A group of tombstones within their retention.

    Attributes:
        deletion_timestamp_ms: the newest deletion time of the group, in epoch milliseconds.
        files: number of tombstones.
        size_bytes: total size of the removed files.
    """

    deletion_timestamp_ms: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastObservation:
    """An observation of one version.

    Attributes:
        health: the facts.
        commit: size in bytes and modification time in epoch milliseconds of the version's commit file. They
            identify the table: a new table at the same path has a different commit file.
        expiring: tombstones within their retention, in at most 24 groups, oldest first. A group counts as
            expired when its newest tombstone has expired.
        compaction: the result of `CompactionPlan.predicted` for the version.
        asked: the parameters of the observation, JSON values only. An observation with other parameters
            cannot reuse this one.
    """

    health: TableHealth
    commit: tuple[int, int]
    expiring: tuple[Expiring, ...] = ()
    compaction: Mapping[str, int] = field(default_factory=dict, hash=False)
    asked: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        health: TableHealth,
        *,
        compaction: Mapping[str, int],
        asked: Mapping[str, Any],
    ) -> Self | None:
        """The observation with these facts; None when log cleanup has deleted the version's commit file."""
        commit = snapshot.segment.version_file
        if commit is None:
            return None
        retained_ms = health.observed_ms - health.deleted_file_retention_ms
        return cls(
            health=health,
            commit=(commit.size_bytes, commit.modified_ms),
            expiring=_grouped(snapshot.tombstones(since_ms=retained_ms)),
            compaction=compaction,
            asked=asked,
        )

    def to_json(self) -> dict[str, Any]:
        """The observation as a JSON object."""
        return {
            "health": self.health.to_json(),
            "commit": list(self.commit),
            "expiring": [
                [group.deletion_timestamp_ms, group.files, group.size_bytes] for group in self.expiring
            ],
            "compaction": dict(self.compaction),
            "asked": dict(self.asked),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The observation that `to_json` wrote.

        Raises:
            ConfigurationError: the document is not an observation.
        """
        try:
            size_bytes, modified_ms = document["commit"]
            return cls(
                health=TableHealth.from_json(document["health"]),
                commit=(int(size_bytes), int(modified_ms)),
                expiring=tuple(
                    Expiring(deletion_timestamp_ms=int(time), files=int(files), size_bytes=int(size))
                    for time, files, size in document["expiring"]
                ),
                compaction={name: int(value) for name, value in document["compaction"].items()},
                asked=dict(document["asked"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                "The facts of the last observation of the table cannot be read.",
                cause=f"The document is malformed: {type(error).__name__}: {error}.",
                fix="Pass `output.seen` of the last result without changes, or pass nothing.",
            ) from error

    def holds(self, store: LogStore) -> bool:
        """True when the table has no newer commit and no new checkpoint since. Costs one listing."""
        return self.holds_in(list_log(store, from_version=self.health.version))

    def holds_in(self, listing: LogListing) -> bool:
        """`holds` for a listing of the log from the observed version or an earlier one. No request."""
        version = self.health.version
        commits = {item.version: item.info for item in listing.commits if item.version >= version}
        own = commits.pop(version, None)
        if own is None or (own.size_bytes, own.modified_ms) != self.commit:
            return False
        new_checkpoint = any(
            item.version >= version and item.version != self.health.checkpoint_version
            for item in listing.checkpoints
        )
        return not commits and not new_checkpoint

    def at(self, now_ms: int) -> TableHealth:
        """The facts of the unchanged table at a later time, with the tombstones that expired since."""
        limit_ms = now_ms - self.health.deleted_file_retention_ms
        expired = [group for group in self.expiring if group.deletion_timestamp_ms < limit_ms]
        return replace(
            self.health,
            observed_ms=now_ms,
            expired_tombstones=self.health.expired_tombstones + sum(group.files for group in expired),
            expired_tombstone_bytes=self.health.expired_tombstone_bytes
            + sum(group.size_bytes for group in expired),
        )


def _grouped(tombstones: pa.Table) -> tuple[Expiring, ...]:
    """The tombstones in order of time, in groups of about equal numbers of files."""
    if tombstones.num_rows == 0:
        return ()
    times = pc.fill_null(tombstones["deletion_timestamp_ms"], 0)
    ordered = pa.table({"time": times, "size": pc.fill_null(tombstones["size_bytes"], 0)}).sort_by("time")
    step = -(-ordered.num_rows // _MOST_BUCKETS)
    groups = []
    for start in range(0, ordered.num_rows, step):
        part = ordered.slice(start, step)
        groups.append(
            Expiring(
                deletion_timestamp_ms=int(part["time"][-1].as_py()),
                files=part.num_rows,
                size_bytes=int(pc.sum(part["size"]).as_py() or 0),
            )
        )
    return tuple(groups)
