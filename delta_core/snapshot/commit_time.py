"""When versions were committed, and which version a time means.

Without in-commit timestamps a version's time is its commit file's, made strictly increasing over the
log as the reference implementation does; with them it is in `commitInfo` (PROTOCOL.md, "In-Commit
Timestamps").
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from operator import index
from typing import SupportsIndex

from delta_core.actions import CommitInfo, Metadata
from delta_core.actions.json_codec import commit_info_from_json, iter_lines, parse_line
from delta_core.errors import ConfigurationError, TableNotFoundError, VersionNotFoundError
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.listing import CommitFile, LogListing, list_log
from delta_core.log.log_segment import LogSegment, earliest_readable_version
from delta_core.storage.log_store import LogStore


def whole_number(value: object, *, what: str, fix: str) -> int | None:
    """A version or time as callers pass it, as an int; None stays None.

    Raises:
        ConfigurationError: text, a float, True or anything else that is no whole number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.", cause=f"It is of type {type(value).__name__}.", fix=fix
        )
    return index(value)


def read_commit_info(data: bytes, *, path: str) -> CommitInfo | None:
    """The `commitInfo` of a commit, or None. Parses only the lines that can hold it.

    Raises:
        CorruptLogError: such a line is damaged.
    """
    for number, line in iter_lines(data):
        if b'"commitInfo"' not in line:
            continue
        action = parse_line(line, number=number, path=path)
        if action is not None and action.kind == "commitInfo":
            return commit_info_from_json(action.fields)
    return None


def monotonic_times_ms(files: Iterable[CommitFile]) -> list[int]:
    """The files' times, each later than the one before."""
    times: list[int] = []
    for file in files:
        own = file.info.modified_ms
        times.append(own if not times or own > times[-1] else times[-1] + 1)
    return times


def commit_timestamp_ms(
    store: LogStore, segment: LogSegment, metadata: Metadata, commits: Sequence[CommitData]
) -> int:
    """The time of a segment's version. At most one request."""
    file = segment.version_file
    if (
        metadata.configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"
        and file is not None
    ):
        own = commits[-1] if commits else None
        # A log compaction file does not preserve `commitInfo`.
        if own is None or own.path != file.path:
            own = read_commits(store, [CommitFile(version=segment.version, info=file)])[0]
        info = read_commit_info(own.data, path=own.path)
        if info is not None and info.in_commit_timestamp_ms is not None:
            return info.in_commit_timestamp_ms
    if file is not None:
        return file.modified_ms
    return max(part.modified_ms for part in segment.checkpoint_parts)


class CommitTimes:
    """The times of all commits in the log, those in commits being read one by one when needed."""

    def __init__(self, store: LogStore, listing: LogListing) -> None:
        self._store = store
        self.files = listing.commits
        self._file_times = monotonic_times_ms(self.files)
        self._in_commit: dict[int, int | None] = {}
        self._first_in_commit = self._find_first_in_commit()

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> int:
        """The time of the commit at a position. At most one request."""
        if index >= self._first_in_commit:
            own = self._read(index)
            if own is not None:
                return own
        return self._file_times[index]

    def _read(self, index: int) -> int | None:
        if index not in self._in_commit:
            commit = read_commits(self._store, [self.files[index]])[0]
            info = read_commit_info(commit.data, path=commit.path)
            self._in_commit[index] = None if info is None else info.in_commit_timestamp_ms
        return self._in_commit[index]

    def _find_first_in_commit(self) -> int:
        """Position of the first commit that carries its time: once enabled, later ones do, too."""
        count = len(self.files)
        if not count or self._read(count - 1) is None:
            return count
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            if self._read(middle) is None:
                low = middle + 1
            else:
                high = middle
        return low


def version_at_timestamp(store: LogStore, timestamp_ms: int) -> int:
    """The latest version that was committed at the time or before it.

    Requests: one listing, and a few commits when they carry their time.

    Raises:
        TableNotFoundError: no table there.
        VersionNotFoundError: the time is before the first version that can be read or after the last.
    """
    listing = list_log(store)
    earliest = earliest_readable_version(listing)
    usable = tuple(file for file in listing.commits if earliest is not None and file.version >= earliest)
    if listing.is_empty or not usable:
        raise TableNotFoundError(
            f"There is no commit at {store.uri!r} to take a time from.",
            fix="Check the URI, or ask for a version.",
        )
    times = CommitTimes(store, LogListing(commits=usable, checkpoints=listing.checkpoints))
    position = bisect_right(times, timestamp_ms)
    first, last = times[0], times[len(times) - 1]
    if position == 0 or timestamp_ms > last:
        raise VersionNotFoundError(
            f"There is no version of {store.uri!r} for the time {_shown(timestamp_ms)}.",
            cause=(
                f"Version {usable[0].version} is of {_shown(first)}, "
                f"the latest, {usable[-1].version}, of {_shown(last)}."
            ),
            fix="Ask for a time in that range, or for a version.",
        )
    return usable[position - 1].version


def first_version_since(store: LogStore, timestamp_ms: int) -> int:
    """The first version that was committed at the time or after it.

    Requests: one listing, and a few commits when they carry their time.

    Raises:
        TableNotFoundError: no table there.
        VersionNotFoundError: the time is after the last version.
    """
    listing = list_log(store)
    if not listing.commits:
        raise TableNotFoundError(
            f"There is no commit at {store.uri!r} to take a time from.",
            fix="Check the URI, or ask for a version.",
        )
    times = CommitTimes(store, listing)
    position = bisect_left(times, timestamp_ms)
    if position == len(times):
        raise VersionNotFoundError(
            f"There is no version of {store.uri!r} at {_shown(timestamp_ms)} or later.",
            cause=f"The latest, {times.files[-1].version}, is of {_shown(times[len(times) - 1])}.",
            fix="Ask for an earlier time, or for a version.",
        )
    return times.files[position].version


def _shown(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
