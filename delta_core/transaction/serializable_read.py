"""Was what a snapshot showed still so at the newest version? A serializable read, without a write.

A read of one version is consistent in itself (snapshot isolation). It is serializable at the newest version
when no commit since has added rows to what was read, removed some, or changed what they mean. The Delta Lake
paper (section 3.2.3) gets the same from a write that changes nothing; this one needs no right to write.
"""

from __future__ import annotations

from delta_core.actions.json_codec import decode_commit
from delta_core.errors import ObjectNotFoundError, StaleCommitError
from delta_core.log.log_path import commit_path
from delta_core.log.log_segment import extend_segment
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.conflict_checker import find_conflict
from delta_core.transaction.file_matching import file_matcher
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import CommitFootprint, ReadSet
from delta_core.transaction.winning_commit import WinningCommit


def verify_serializable(snapshot: Snapshot, reads: ReadSet) -> int:
    """The newest version at which the reads would have shown the same rows.

    One listing, and one request for each commit since the snapshot; two where listings lag, or where the
    log has to be read anew.

    Args:
        snapshot: what was read.
        reads: what of it was read.

    Raises:
        ConcurrentModificationError: by kind; the commit that the reads do not agree with is named.
        StaleCommitError: the table is another one now, or its commits since were cleaned up.
        CorruptLogError: a commit since is damaged.
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
                f"Whether version {snapshot.version} still holds cannot be told.",
                cause=f"{path!r} was cleaned up since.",
                fix="Open the table again and read again.",
            ) from error
        violation = find_conflict(footprint, WinningCommit.of(version, decode_commit(data, path=path)))
        if violation is not None:
            raise violation.error
    return latest


def _latest_version(snapshot: Snapshot) -> int:
    store = snapshot.store
    # Where listings lag, what this process has seen before counts, too.
    segment = extend_segment(store, snapshot.segment) if store.consistent_listing else None
    if segment is not None:
        return segment.version
    latest = snapshot.refresh()
    if latest.version < snapshot.version or latest.metadata.id != snapshot.metadata.id:
        raise StaleCommitError(
            f"{store.uri!r} is another table now.",
            cause=f"Version {snapshot.version} was read, and it was deleted or replaced since.",
            fix="Open it again and read again.",
        )
    return latest.version
