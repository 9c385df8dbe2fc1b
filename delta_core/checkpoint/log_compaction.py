"""Writing log compaction files (PROTOCOL.md, "Log Compaction Files").

Such a file stands for some commits in a row: what they leave behind, tombstones included. The commits stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from delta_core.actions import Action
from delta_core.actions.json_codec import action_to_json
from delta_core.checkpoint.create_only import created
from delta_core.checkpoint.preconditions import other_log
from delta_core.errors import ConfigurationError, ObjectExistsError, VerificationError, VersionNotFoundError
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.listing import list_log
from delta_core.log.log_path import compaction_path
from delta_core.replay.tail import Tail, replay_tail
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import without_cache
from delta_core.table_features.writer_kind import WriterKind


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedLog:
    """A log compaction file, written now or found.

    Attributes:
        path: the file.
        first, last: the versions that it stands for.
        num_actions: its lines; None where it was found.
    """

    path: str
    first: int
    last: int
    num_actions: int | None


def compact_log(snapshot: Snapshot, *, first: int, last: int) -> CompactedLog | None:
    """Write the log compaction file of the commits from `first` to `last`, both included.

    It is compared with them before it appears, and replaces none. Holds the commits in memory. Requests: a
    listing, one for each commit, a look at the newest commit, one write.

    Args:
        snapshot: of `last` or a later version.
        first: the first version.
        last: the last one, after `first`.

    Returns:
        The file; None where the commits change nothing, as those of a vacuum, and there is nothing to write.

    Raises:
        ConfigurationError: the versions are none that follow one another, or later than the snapshot's.
        VersionNotFoundError: a commit has been cleaned up.
        UnsupportedTableFeatureError: the table has actions that we may not know.
        StaleCommitError: the table at this place is no longer the snapshot's.
        CorruptLogError: a commit is damaged.
        StorageError: it was not written, or that cannot be told.
    """
    snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="compact the log")
    if not 0 <= first < last <= snapshot.version:
        raise ConfigurationError(
            f"The commits from {first} to {last} cannot be compacted.",
            cause=f"A compaction stands for two versions or more, up to {snapshot.version}.",
            fix="Pass a first version and a later last one that the snapshot has.",
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
        # A file without any action is one that readers take for damaged.
        return None
    path = compaction_path(first, last)
    data = b"".join(lines)
    _require_equal(CommitData(version=last, path=path, data=data), tail)
    replaced = other_log(snapshot)
    if replaced is not None:
        raise replaced
    try:
        with created(store, path, clock=snapshot.clock) as sink:
            sink.write(data)
    except ObjectExistsError:
        return CompactedLog(path=path, first=first, last=last, num_actions=None)
    return CompactedLog(path=path, first=first, last=last, num_actions=len(lines))


def _actions(tail: Tail) -> Iterator[Mapping[str, Any]]:
    """What commits leave behind; nothing in it is new to the table, so `dataChange` is false."""
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
    found = replay_tail([compacted])
    if _comparable(found) != _comparable(tail):
        raise VerificationError(
            f"The log compaction {compacted.path!r} would not stand for its commits.",
            cause="Read back, it leaves something else behind than they do.",
            fix="Nothing was written. Report it with the commits: this is an error of deltaward.",
        )


def _comparable(tail: Tail) -> tuple[object, ...]:
    files = [
        {key: {**fields, "dataChange": False} for key, fields in side.items()}
        for side in (tail.adds, tail.removes)
    ]
    return (tail.protocol, tail.metadata, tail.transactions, tail.domain_metadata, files)
