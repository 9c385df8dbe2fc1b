"""When some operations were last committed, by the newest commits of a table."""

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
    """When each operation last succeeded, in epoch milliseconds; those not found are left out.

    A vacuum that failed commits its end, too, with the status FAILED.

    Looks from the newest commit backwards until every operation is found. One request for each commit that is
    not known, sixteen side by side where the store is remote.

    Args:
        snapshot: later commits do not count.
        listing: of the table's log.
        operations: by the names in `commitInfo`.
        after_version: earlier commits are not looked at, nor is this one.
        limit: how many commits are looked at, at most.
        known: what is known of commits, by version.

    Raises:
        CorruptLogError: a commit's provenance is damaged.
        ObjectNotFoundError: log cleanup took a commit meanwhile.
    """
    found: dict[str, int] = {}
    since = _in_commit_since(snapshot)
    files = [file for file in listing.commits if after_version < file.version <= snapshot.version]
    files = files[::-1][:limit]
    for start in range(0, len(files), _READ_AT_ONCE):
        part = files[start : start + _READ_AT_ONCE]
        infos = {**known, **_read(snapshot, [file for file in part if file.version not in known])}
        for file in part:
            info = infos[file.version]
            name = info.operation
            failed = info.operation_parameters.get("status") == "FAILED"
            if name is None or name not in operations or name in found or failed:
                continue
            own = info.in_commit_timestamp_ms
            counts = own is not None and since is not None and file.version >= since
            found[name] = own if counts and own is not None else file.info.modified_ms
        if len(found) == len(set(operations)):
            break
    return found


def _read(snapshot: Snapshot, files: list[CommitFile]) -> dict[int, CommitInfo]:
    return {
        commit.version: read_commit_info(commit.data, path=commit.path) or CommitInfo()
        for commit in read_commits(snapshot.store, files)
    }


def _in_commit_since(snapshot: Snapshot) -> int | None:
    """The first version whose commit's own time counts; None when none does."""
    try:
        since = in_commit_times_since(snapshot.metadata)
    except InvalidTablePropertyError:
        return 0
    return None if since is None else since.version
