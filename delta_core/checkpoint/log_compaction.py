"""Writing log compaction files (PROTOCOL.md, "Log Compaction Files").

A log compaction file holds the reconciled actions of consecutive commits, including tombstones. The commits
are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from delta_core.actions import Action
from delta_core.actions.json_codec import action_to_json
from delta_core.checkpoint.create_if_absent import created
from delta_core.checkpoint.preconditions import replaced_log_error
from delta_core.errors import ConfigurationError, ObjectExistsError, VerificationError, VersionNotFoundError
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.listing import list_log
from delta_core.log.log_path import compaction_path
from delta_core.replay.tail import Tail, replay_tail
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import without_cache
from delta_core.table_features.feature import WriterKind


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedLog:
    """A log compaction file that was written, or that existed before.

    Attributes:
        path: the file.
        first: the first version that it combines.
        last: the last version that it combines.
        num_actions: the number of its actions; None if the file existed before.
    """

    path: str
    first: int
    last: int
    num_actions: int | None


def compact_log(snapshot: Snapshot, *, first: int, last: int) -> CompactedLog | None:
    """Write the log compaction file of the commits from `first` to `last`, both included.

    The file is compared with the commits before it is written, and it replaces no file. The commits are held
    in memory. Requests: one listing, one read for each commit, one check of the newest commit, one write.

    Args:
        snapshot: the table at `last` or a later version.
        first: the first version.
        last: the last version, greater than `first`.

    Returns:
        The file; None if the commits change nothing, as the commits of a vacuum, so no file is written.

    Raises:
        ConfigurationError: the range does not hold two or more versions up to the snapshot's.
        VersionNotFoundError: a commit has been cleaned up.
        UnsupportedTableFeatureError: the table may have actions that this library does not support.
        StaleCommitError: another table has replaced the snapshot's table at this location.
        CorruptLogError: a commit is damaged.
        VerificationError: the file would not be equivalent to the commits; it was not written.
        StorageError: the file was not written, or may have been written.
    """
    snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="compact the log")
    if not 0 <= first < last <= snapshot.version:
        raise ConfigurationError(
            f"The commits from {first} to {last} cannot be compacted.",
            cause=f"A log compaction file combines two or more versions, up to {snapshot.version}.",
            fix="Pass a first version and a later last version, both up to the snapshot's version.",
        )
    store = snapshot.store
    listed = {item.version: item for item in list_log(store, from_version=first).commits}
    missing = [version for version in range(first, last + 1) if version not in listed]
    if missing:
        raise VersionNotFoundError(
            f"Version {missing[0]} of {store.uri!r} is not in the log.",
            cause="Log cleanup has deleted its commit.",
            fix="Compact later versions.",
        )
    commits = read_commits(without_cache(store), [listed[version] for version in range(first, last + 1)])
    tail = replay_tail(commits)
    lines = [orjson.dumps(action, option=orjson.OPT_APPEND_NEWLINE) for action in _actions(tail)]
    if not lines:
        # Readers would treat a file without any action as damaged.
        return None
    path = compaction_path(first, last)
    data = b"".join(lines)
    _require_equal(CommitData(version=last, path=path, data=data), tail)
    replaced = replaced_log_error(snapshot)
    if replaced is not None:
        raise replaced
    try:
        with created(store, path, clock=snapshot.clock) as sink:
            sink.write(data)
    except ObjectExistsError:
        return CompactedLog(path=path, first=first, last=last, num_actions=None)
    return CompactedLog(path=path, first=first, last=last, num_actions=len(lines))


def _actions(tail: Tail) -> Iterator[Mapping[str, Any]]:
    """The reconciled actions of the commits. No data is new to the table, so `dataChange` is false."""
    others: list[Action] = [
        *(action for action in (tail.protocol, tail.metadata) if action is not None),
        *tail.transactions.values(),
        *tail.domain_metadata.values(),
    ]
    yield from map(action_to_json, others)
    for kind, files in (("add", tail.adds), ("remove", tail.removes)):
        for fields in files.values():
            yield {kind: {**fields, "dataChange": False}}


def _require_equal(compacted: CommitData, tail: Tail) -> None:
    replayed = replay_tail([compacted])
    if _comparable(replayed) != _comparable(tail):
        raise VerificationError(
            f"The log compaction file {compacted.path!r} would not be equivalent to its commits.",
            cause="Its replay gives another state than the replay of the commits. It was not written.",
            fix="Report this error of deltaward together with the commits.",
        )


def _comparable(tail: Tail) -> tuple[object, ...]:
    files = [
        {key: {**fields, "dataChange": False} for key, fields in side.items()}
        for side in (tail.adds, tail.removes)
    ]
    return (tail.protocol, tail.metadata, tail.transactions, tail.domain_metadata, files)
