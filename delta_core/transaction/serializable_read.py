"""Checks that a read of a snapshot is still valid at the newest version: a serializable read without a write.

A read of one version is consistent (snapshot isolation). It is serializable at the newest version when no
later commit added matching rows, removed rows that were read, or changed their meaning. The Delta Lake paper
(section 3.2.3) achieves the same with a write that changes nothing. This check needs no write permission.
"""

from __future__ import annotations

from delta_core.actions.json_codec import decode_commit
from delta_core.errors import ObjectNotFoundError, StaleCommitError
from delta_core.log.log_path import commit_path
from delta_core.log.log_segment import extend_segment
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.conflict_checker import find_conflict
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import CommitFootprint, ReadSet, file_matcher
from delta_core.transaction.winning_commit import WinningCommit


def verify_serializable(snapshot: Snapshot, reads: ReadSet) -> int:
    """The newest version, after a check that the reads would return the same rows there.

    One listing, and one request for each commit since the snapshot. Two requests where listings lag, or where
    the log must be read again.

    Args:
        snapshot: the version that was read.
        reads: the predicates and files that were read.

    Raises:
        ConcurrentModificationError: a later commit conflicts with the reads. The subclass depends on the
            kind of conflict, and the message names the commit.
        StaleCommitError: the table was replaced, or later commits were cleaned up.
        CorruptLogError: a later commit is damaged.
    """
    latest = _latest_version(snapshot)
    footprint = CommitFootprint.of(
        (),
        reads=reads,
        isolation=IsolationLevel.SERIALIZABLE,
        base_metadata=snapshot.metadata,
        matcher=file_matcher(snapshot.schema, snapshot.partition_columns, mapping=snapshot.column_mapping),
    )
    for version in range(snapshot.version + 1, latest + 1):
        path = commit_path(version)
        try:
            data = snapshot.store.read(path)
        except ObjectNotFoundError as error:
            raise StaleCommitError(
                f"The read of version {snapshot.version} cannot be verified.",
                cause=f"The commit {path!r} was cleaned up since.",
                fix="Open the table again and repeat the read.",
            ) from error
        violation = find_conflict(footprint, WinningCommit.of(version, decode_commit(data, path=path)))
        if violation is not None:
            raise violation.error
    return latest


def _latest_version(snapshot: Snapshot) -> int:
    store = snapshot.store
    # Where listings lag, versions that this process read before count too.
    segment = extend_segment(store, snapshot.segment) if store.consistent_listing else None
    if segment is not None:
        return segment.version
    latest = snapshot.refresh()
    if latest.version < snapshot.version or latest.metadata.id != snapshot.metadata.id:
        raise StaleCommitError(
            f"The table at {store.uri!r} is no longer the one that was read.",
            cause=f"The table was deleted or replaced since version {snapshot.version} was read.",
            fix="Open the table again and repeat the read.",
        )
    return latest.version
