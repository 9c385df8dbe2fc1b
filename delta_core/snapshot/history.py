"""Who committed what, newest first."""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.actions import Action, CommitInfo
from delta_core.actions.json_codec import decode_commit
from delta_core.errors import ObjectNotFoundError, TableNotFoundError, VersionNotFoundError
from delta_core.log.bounded_read import read_lines
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import LogListing, list_log
from delta_core.log.log_path import commit_path
from delta_core.snapshot.commit_time import monotonic_times_ms, read_commit_info
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One commit.

    Attributes:
        timestamp_ms: the time that time travel goes by.
        commit_info: empty when the commit has none.
    """

    version: int
    timestamp_ms: int
    commit_info: CommitInfo


def history(source: Snapshot | LogStore, *, limit: int | None = None) -> list[HistoryEntry]:
    """The commits that are still in the log, newest first, up to a snapshot's version.

    Requests: one listing and one per entry.

    Args:
        source: a snapshot, or the store of a table for its whole log.
        limit: how many entries at most.

    Raises:
        TableNotFoundError: no table there.
        CorruptLogError: a commit's provenance is damaged.
    """
    store = source.store if isinstance(source, Snapshot) else source
    listing: LogListing = list_log(store)
    if listing.is_empty:
        raise TableNotFoundError(f"There is no Delta table at {store.uri!r}.", fix="Check the URI.")
    highest = source.version if isinstance(source, Snapshot) else listing.latest_version
    files = [file for file in listing.commits if file.version <= highest]
    times = monotonic_times_ms(files)
    newest = list(zip(files, times, strict=True))[::-1][:limit]
    entries = []
    for file, time_ms in newest:
        commit = read_commits(store, [file])[0]
        info = read_commit_info(commit.data, path=commit.path) or CommitInfo()
        own = info.in_commit_timestamp_ms
        entries.append(
            HistoryEntry(version=file.version, timestamp_ms=time_ms if own is None else own, commit_info=info)
        )
    return entries


def commit_actions(store: LogStore, version: int) -> list[Action]:
    """The actions of one commit, in the order of the file. Two requests; one when it is in a cache.

    Raises:
        VersionNotFoundError: the commit is not, or no longer, in the log.
        CorruptLogError: the commit is damaged.
    """
    path = commit_path(version)
    try:
        # What is too long to be a commit is refused before it is in memory, so the size comes first.
        data = read_lines(store, store.head(path))
    except ObjectNotFoundError as error:
        raise VersionNotFoundError(
            f"Version {version} of {store.uri!r} is not in the log.",
            cause="It was cleaned up or never existed.",
            fix="Ask for a version that history lists.",
        ) from error
    return decode_commit(data, path=path)
