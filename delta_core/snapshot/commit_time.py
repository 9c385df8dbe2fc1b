"""The commit times of versions, and the version at a time.

Without in-commit timestamps, the time of a version is the modification time of its commit file. These times
are made strictly increasing over the log, as in the reference implementation. With in-commit timestamps, the
time is in `commitInfo`. A table may have in-commit timestamps from a later version on, which its properties
record. The two kinds of times need not be in one order, since copying a table gives its files new times
(PROTOCOL.md, "Recommendations for Readers of Tables with In-Commit Timestamps").
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from delta_core.actions import CommitInfo, Metadata
from delta_core.actions.json_codec import commit_info_from_json, iter_lines, parse_line
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    CorruptLogError,
    InvalidTablePropertyError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.log.checksum import read_checksum
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.listing import CommitFile, LogListing, list_log
from delta_core.log.log_segment import LogSegment, earliest_readable_version
from delta_core.snapshot.open_log import open_log
from delta_core.storage.log_store import LogStore
from delta_core.table_features.table_properties import (
    ENABLE_IN_COMMIT_TIMESTAMPS,
    TableProperty,
    parse_integer,
)

ENABLEMENT_VERSION: TableProperty[int | None] = TableProperty(
    key="delta.inCommitTimestampEnablementVersion",
    default=None,
    parse=parse_integer,
    help="The first version with an in-commit timestamp.",
)
ENABLEMENT_TIMESTAMP: TableProperty[int | None] = TableProperty(
    key="delta.inCommitTimestampEnablementTimestamp",
    default=None,
    parse=parse_integer,
    help="The in-commit timestamp of that version, in milliseconds since 1970 (UTC).",
)


def read_commit_info(data: bytes, *, path: str) -> CommitInfo | None:
    """The `commitInfo` of a commit, or None. Parses only the lines that can contain it.

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
    """The modification times of the files, adjusted so that each is later than the previous one."""
    times: list[int] = []
    for file in files:
        own = file.info.modified_ms
        times.append(own if not times or own > times[-1] else times[-1] + 1)
    return times


@dataclass(frozen=True, slots=True, kw_only=True)
class InCommitTimesSince:
    """The first version of a table with in-commit timestamps.

    Attributes:
        version: the first version with an in-commit timestamp.
        timestamp_ms: the time of that version; None if all versions have in-commit timestamps.
    """

    version: int = 0
    timestamp_ms: int | None = None


def in_commit_times_since(metadata: Metadata) -> InCommitTimesSince | None:
    """The first version with in-commit timestamps; None if the metadata does not enable them.

    Raises:
        InvalidTablePropertyError: the version or the time is not a whole number, or one of them is missing.
    """
    if not _in_commit(metadata):
        return None
    configuration = metadata.configuration
    version, timestamp_ms = ENABLEMENT_VERSION.of(configuration), ENABLEMENT_TIMESTAMP.of(configuration)
    if version is None and timestamp_ms is None:
        return InCommitTimesSince()
    if version is None or timestamp_ms is None:
        missing = ENABLEMENT_VERSION if version is None else ENABLEMENT_TIMESTAMP
        raise InvalidTablePropertyError(
            f"The table property {missing.key} is missing.",
            cause="The start of in-commit timestamps needs both a version and a time.",
            fix="Set both properties, or ask for a version instead of a time.",
        )
    return InCommitTimesSince(version=version, timestamp_ms=timestamp_ms)


def commit_timestamp_ms(
    store: LogStore, segment: LogSegment, metadata: Metadata, commits: Sequence[CommitData]
) -> int:
    """The time of a segment's version in epoch milliseconds. At most one request.

    If the version's commit was deleted, an in-commit timestamp comes from the version's checksum, since a
    checkpoint does not contain it.
    """
    file = segment.version_file
    if _in_commit(metadata) and file is not None:
        own = commits[-1] if commits else None
        # A log compaction file does not preserve `commitInfo`.
        if own is None or own.path != file.path:
            own = read_commits(store, [CommitFile(version=segment.version, info=file)])[0]
        info = read_commit_info(own.data, path=own.path)
        if info is not None and info.in_commit_timestamp_ms is not None:
            return info.in_commit_timestamp_ms
    if file is not None:
        return file.modified_ms
    if _in_commit(metadata) and segment.checksum is not None:
        checksum = read_checksum(store, segment.checksum)
        if checksum is not None and checksum.in_commit_timestamp_ms is not None:
            return checksum.in_commit_timestamp_ms
    return max(part.modified_ms for part in segment.checkpoint_parts)


class CommitTimes:
    """The times of all commits in the log. In-commit timestamps are read one by one on demand.

    Args:
        store: the table's store.
        listing: the table's log.
        metadata: the metadata that defines the start of in-commit timestamps. None takes that of the latest
            version: one request for its commit, and opening the version if the commit has a timestamp.
        clock: waits between repeated listings.

    Raises:
        InvalidTablePropertyError: the table properties for the start of in-commit timestamps are invalid.
        CorruptLogError: the log is damaged.
    """

    def __init__(
        self,
        store: LogStore,
        listing: LogListing,
        *,
        metadata: Metadata | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._store = store
        self.files = listing.commits
        self._file_times = monotonic_times_ms(self.files)
        self._in_commit: dict[int, int | None] = {}
        count = len(self.files)
        if metadata is None and count and self._read(count - 1) is not None:
            metadata = open_log(store, version=self.files[-1].version, clock=clock).metadata
        since = None if metadata is None else in_commit_times_since(metadata)
        # The position of the first commit with an in-commit timestamp: all later commits have one, too.
        self._first_in_commit = count
        self._enabled_ms: int | None = None
        if since is not None:
            self._first_in_commit = bisect_left(self.files, since.version, key=lambda file: file.version)
            self._enabled_ms = since.timestamp_ms

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> int:
        """The in-commit timestamp of the commit at a position, or its file's time. At most one request."""
        if index >= self._first_in_commit:
            own = self._read(index)
            if own is not None:
                return own
        return self._file_times[index]

    def until(self, timestamp_ms: int) -> int:
        """The number of commits up to the last one at the time or before; 0 when all commits are later.

        Requests: reading a few commits if they have in-commit timestamps.

        Raises:
            CorruptLogError: a commit lacks its in-commit timestamp.
        """
        low, high = self._candidates(timestamp_ms)
        count = bisect_right(range(len(self)), timestamp_ms, low, high, key=self._required_time)
        return 0 if count == low else count

    def since(self, timestamp_ms: int) -> int:
        """The position of the first commit at the time or later; the number of commits if all are earlier.

        Requests and errors are those of `until`.
        """
        low, high = self._candidates(timestamp_ms)
        return bisect_left(range(len(self)), timestamp_ms, low, high, key=self._required_time)

    def _candidates(self, timestamp_ms: int) -> tuple[int, int]:
        """The range of commits to search for a time: those with the same kind of times."""
        if self._enabled_ms is None:
            return 0, len(self)
        if timestamp_ms >= self._enabled_ms:
            return self._first_in_commit, len(self)
        return 0, self._first_in_commit

    def _required_time(self, index: int) -> int:
        if index >= self._first_in_commit and self._read(index) is None:
            raise CorruptLogError(
                f"Version {self.files[index].version} of {self._store.uri!r} has no commit time.",
                cause="The table has in-commit timestamps, and the commit lacks its timestamp.",
                fix="Ask for a version instead of a time.",
            )
        return self[index]

    def _read(self, index: int) -> int | None:
        if index not in self._in_commit:
            commit = read_commits(self._store, [self.files[index]])[0]
            info = read_commit_info(commit.data, path=commit.path)
            self._in_commit[index] = None if info is None else info.in_commit_timestamp_ms
        return self._in_commit[index]


def version_at_timestamp(store: LogStore, timestamp_ms: int) -> int:
    """The latest version that was committed at the time or before it.

    Requests: one listing and the latest commit. If that commit has an in-commit timestamp, also opening the
    latest version and reading a few commits.

    Raises:
        CorruptLogError: a commit lacks its in-commit timestamp.
        InvalidTablePropertyError: the table properties for the start of in-commit timestamps are invalid.
        TableNotFoundError: the log has no commit.
        VersionNotFoundError: the time is before the first version that can be read or after the last.
    """
    listing = list_log(store)
    earliest = earliest_readable_version(listing)
    usable = tuple(file for file in listing.commits if earliest is not None and file.version >= earliest)
    if listing.is_empty or not usable:
        raise TableNotFoundError(
            f"Found no commit at {store.uri!r} that has a time.",
            fix="Check the URI, or ask for a version.",
        )
    times = CommitTimes(store, LogListing(commits=usable, checkpoints=listing.checkpoints))
    position = times.until(timestamp_ms)
    first, last = times[0], times[len(times) - 1]
    if position == 0 or timestamp_ms > last:
        raise VersionNotFoundError(
            f"Found no version of {store.uri!r} for the time {_shown(timestamp_ms)}.",
            cause=(
                f"Version {usable[0].version} was committed at {_shown(first)}, "
                f"the latest version {usable[-1].version} at {_shown(last)}."
            ),
            fix="Ask for a time in that range, or for a version.",
        )
    return usable[position - 1].version


def first_version_since(store: LogStore, timestamp_ms: int) -> int:
    """The first version that was committed at the time or after it.

    Requests: those of `version_at_timestamp`.

    Raises:
        CorruptLogError: a commit lacks its in-commit timestamp.
        InvalidTablePropertyError: the table properties for the start of in-commit timestamps are invalid.
        TableNotFoundError: the log has no commit.
        VersionNotFoundError: the time is after the last version.
    """
    listing = list_log(store)
    if not listing.commits:
        raise TableNotFoundError(
            f"Found no commit at {store.uri!r} that has a time.",
            fix="Check the URI, or ask for a version.",
        )
    times = CommitTimes(store, listing)
    position = times.since(timestamp_ms)
    if position == len(times):
        raise VersionNotFoundError(
            f"Found no version of {store.uri!r} at {_shown(timestamp_ms)} or later.",
            cause=(
                f"The latest version {times.files[-1].version} was committed at "
                f"{_shown(times[len(times) - 1])}."
            ),
            fix="Ask for an earlier time, or for a version.",
        )
    return times.files[position].version


def _in_commit(metadata: Metadata) -> bool:
    return metadata.configuration.get(ENABLE_IN_COMMIT_TIMESTAMPS.key, "").strip().lower() == "true"


def _shown(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
