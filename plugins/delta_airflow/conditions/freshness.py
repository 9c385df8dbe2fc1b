"""The condition that the data of a table is fresh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from delta_airflow.conditions.base import TableCondition
from delta_core.actions import Action, AddCdcFile, AddFile, CommitInfo, RemoveFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import VersionNotFoundError
from delta_core.log.listing import list_log
from delta_core.snapshot.commit_time import in_commit_times_since
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot


class FreshnessCondition(TableCondition):
    """The table has a commit that changed data and that is not older than `max_age_seconds`.

    Neither maintenance nor a commit that changes only the table definition counts as a change of data.
    Commits are read from the newest backwards until one is too old. Each commit is read once.

    Args:
        table_uri: canonical URI of the table.
        max_age_seconds: the maximum age of the newest change.
        storage_options: options of the store.
        clock: gives the current time.
    """

    def __init__(
        self,
        table_uri: str,
        max_age_seconds: float,
        *,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(table_uri, storage_options=storage_options)
        self._max_age_ms = int(max_age_seconds * 1000)
        self._clock = clock
        self._checked_version = -1

    def check(self) -> dict[str, Any] | None:
        snapshot = self.latest()
        # Commits that an earlier check rejected as too old, or without data, cannot have become fresh.
        if snapshot is None or snapshot.version == self._checked_version:
            return None
        now_ms = self._clock.now_ms()
        change = self._newest_change(snapshot, since_ms=now_ms - self._max_age_ms)
        self._checked_version = snapshot.version
        if change is None:
            return None
        version, time_ms = change
        return {
            "version": version,
            "timestamp_ms": time_ms,
            "age_seconds": round(max(0, now_ms - time_ms) / 1000, 3),
        }

    def _newest_change(self, snapshot: Snapshot, *, since_ms: int) -> tuple[int, int] | None:
        """Version and time of the newest commit that changed data, unless it is older than `since_ms`."""
        own_times = in_commit_times_since(snapshot.metadata)
        listed = list_log(self.store, from_version=self._checked_version + 1).commits
        for file in reversed([file for file in listed if file.version <= snapshot.version]):
            carries_time = own_times is not None and file.version >= own_times.version
            if not carries_time and file.info.modified_ms < since_ms:
                return None
            try:
                actions = commit_actions(self.store, file.version)
            except VersionNotFoundError:
                return None  # Log cleanup has deleted the commit, so it is old.
            time_ms = (_own_time_ms(actions) if carries_time else None) or file.info.modified_ms
            if time_ms < since_ms:
                return None
            if _changes_data(actions):
                return file.version, time_ms
        return None


def _own_time_ms(actions: Iterable[Action]) -> int | None:
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    return None if info is None else info.in_commit_timestamp_ms


def _changes_data(actions: Iterable[Action]) -> bool:
    return any(
        isinstance(action, AddCdcFile) or (isinstance(action, (AddFile, RemoveFile)) and action.data_change)
        for action in actions
    )
