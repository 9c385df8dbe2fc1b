"""The history of a table: its commits with their provenance, newest first."""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.actions import Action, CommitInfo, Metadata
from delta_core.actions.json_codec import decode_commit
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import (
    InvalidTablePropertyError,
    ObjectNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.log.commit_reader import read_commits, read_lines
from delta_core.log.listing import LogListing, list_log
from delta_core.log.log_path import commit_path
from delta_core.snapshot.commit_time import in_commit_times_since, monotonic_times_ms, read_commit_info
from delta_core.snapshot.open_log import open_log
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One commit in the history of a table.

    Attributes:
        version: the version.
        timestamp_ms: the commit's time in epoch milliseconds, as time travel uses it.
        commit_info: the provenance; without any fields when the commit has no `commitInfo`.
    """

    version: int
    timestamp_ms: int
    commit_info: CommitInfo


def history(source: Snapshot | LogStore, *, limit: int | None = None) -> list[HistoryEntry]:
    """The commits that are still in the log, newest first, up to a snapshot's version.

    Requests: one listing and one for each entry. If `source` is a store whose newest commit has an in-commit
    timestamp, also the requests for opening the table.

    Args:
        source: a snapshot, or the store of a table for its whole log.
        limit: the maximum number of entries.

    Raises:
        TableNotFoundError: no table exists at the location.
        CorruptLogError: the provenance of a commit is damaged.
    """
    store = source.store if isinstance(source, Snapshot) else source
    listing: LogListing = list_log(store)
    if listing.is_empty:
        raise TableNotFoundError(f"Found no Delta table at {store.uri!r}.", fix="Check the URI.")
    highest = source.version if isinstance(source, Snapshot) else listing.latest_version
    files = [file for file in listing.commits if file.version <= highest]
    times = monotonic_times_ms(files)
    newest = list(zip(files, times, strict=True))[::-1][:limit]
    entries: list[HistoryEntry] = []
    since: int | None = None
    for file, time_ms in newest:
        commit = read_commits(store, [file])[0]
        info = read_commit_info(commit.data, path=commit.path) or CommitInfo()
        own = info.in_commit_timestamp_ms
        if not entries and isinstance(source, Snapshot):
            since = _in_commit_since(source.metadata)
        elif not entries and own is not None:
            since = _in_commit_since(open_log(store, version=highest, clock=SYSTEM_CLOCK).metadata)
        # An in-commit timestamp from before the current enablement is ignored.
        own = own if since is not None and file.version >= since else None
        entries.append(
            HistoryEntry(version=file.version, timestamp_ms=time_ms if own is None else own, commit_info=info)
        )
    return entries


def _in_commit_since(metadata: Metadata) -> int | None:
    """The first version whose in-commit timestamp is valid; None without in-commit timestamps."""
    try:
        since = in_commit_times_since(metadata)
    except InvalidTablePropertyError:
        return 0  # the history stays readable, to show the commit that set the invalid property
    return None if since is None else since.version


def commit_actions(store: LogStore, version: int) -> list[Action]:
    """The actions of one commit, in the order of the file. Two requests, or one if it is in a cache.

    Raises:
        VersionNotFoundError: the commit is not in the log, or no longer.
        CorruptLogError: the commit is damaged.
    """
    path = commit_path(version)
    try:
        # The size comes first, so that a line that is too long is refused before it is in memory.
        data = read_lines(store, store.head(path))
    except ObjectNotFoundError as error:
        raise VersionNotFoundError(
            f"Version {version} of {store.uri!r} is not in the log.",
            cause="Its commit was cleaned up or never existed.",
            fix="Ask for a version that the history lists.",
        ) from error
    return decode_commit(data, path=path)
