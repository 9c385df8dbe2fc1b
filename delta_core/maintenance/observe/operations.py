"""The times of the last commits of some operations, from the newest commits of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from delta_core.actions import CommitInfo
from delta_core.errors import InvalidTablePropertyError
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import CommitFile, LogListing
from delta_core.snapshot.commit_time import in_commit_times_since, read_commit_info
from delta_core.snapshot.snapshot import Snapshot

_READ_AT_ONCE = 16


def last_times_ms(
    snapshot: Snapshot,
    listing: LogListing,
    operations: Collection[str],
    *,
    after_version: int = -1,
    limit: int,
    known: Mapping[int, CommitInfo],
) -> dict[str, int]:
    """The time of the last success of each operation, in epoch milliseconds; without operations not found.

    Commits with the status FAILED do not count: a failed vacuum also commits a VACUUM END.

    Reads backwards from the newest commit until every operation is found. Costs one request for each commit
    that is not in `known`; sixteen requests run in parallel on a remote store.

    Args:
        snapshot: the newest version to read; later commits are ignored.
        listing: the listing of the table's log.
        operations: names of operations, as in `commitInfo`.
        after_version: only commits after this version are read.
        limit: most commits to examine, unless more of the newest ones are in `known`.
        known: commit infos that are already loaded, by version.

    Raises:
        CorruptLogError: the `commitInfo` of a commit is malformed.
        ObjectNotFoundError: log cleanup deleted a commit after the listing.
    """
    times: dict[str, int] = {}
    since = _in_commit_since(snapshot)
    files = [file for file in listing.commits if after_version < file.version <= snapshot.version]
    # The commits in memory are the newest ones.
    files = files[::-1][: max(limit, sum(file.version in known for file in files))]
    for start in range(0, len(files), _READ_AT_ONCE):
        part = files[start : start + _READ_AT_ONCE]
        infos = {**known, **_read(snapshot, [file for file in part if file.version not in known])}
        for file in part:
            info = infos[file.version]
            name = info.operation
            failed = info.operation_parameters.get("status") == "FAILED"
            if name is None or name not in operations or name in times or failed:
                continue
            in_commit = info.in_commit_timestamp_ms
            valid = in_commit is not None and since is not None and file.version >= since
            times[name] = in_commit if valid and in_commit is not None else file.info.modified_ms
        if len(times) == len(set(operations)):
            break
    return times


def _read(snapshot: Snapshot, files: list[CommitFile]) -> dict[int, CommitInfo]:
    return {
        commit.version: read_commit_info(commit.data, path=commit.path) or CommitInfo()
        for commit in read_commits(snapshot.store, files)
    }


def _in_commit_since(snapshot: Snapshot) -> int | None:
    """The first version with in-commit timestamps enabled; None when they are not enabled."""
    try:
        since = in_commit_times_since(snapshot.metadata)
    except InvalidTablePropertyError:
        return 0
    return None if since is None else since.version
