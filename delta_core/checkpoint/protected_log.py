"""What `checkpointProtection` asks of who cleans up a log (the protocol's RFC "Checkpoint Protection").

A feature that was dropped may still be in use in older versions. Clients that do not know it read the table
from a checkpoint behind them, as long as that one is there. So the log before
`delta.requireCheckpointProtectionBeforeVersion` goes at once, or bit by bit only by who knows every protocol
in what is deleted. A clean-up of ours writes no checkpoint, and deletes none behind the version that it cuts
at; by that alone the rule would let it. It looks at the protocols all the same: what it does not know may ask
something of a clean-up.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from delta_core.actions import Protocol
from delta_core.errors import CorruptLogError, ObjectNotFoundError
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import LogListing
from delta_core.replay.state import checkpoint_protocol_and_metadata
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import FEATURES
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.support import MAX_READER_VERSION, MAX_WRITER_VERSION
from delta_core.table_features.upgrade import supported_features
from delta_core.table_features.writer_kind import WriterKind

_FEATURE = "checkpointProtection"
_COMMITS_AT_ONCE = 64


def protected_before(snapshot: Snapshot) -> int:
    """The version before which the log is kept together; 0 where it is not. No request.

    A property that is no number protects all of the log: nobody knows what is meant.
    """
    if _FEATURE not in supported_features(snapshot.protocol):
        return 0
    text = snapshot.metadata.configuration.get(CHECKPOINT_PROTECTION, "0").strip()
    return int(text) if text.isascii() and text.isdecimal() else sys.maxsize


def may_cut_at(snapshot: Snapshot, listing: LogListing, version: int) -> bool:
    """Whether the log before a version may be deleted, and no more of it.

    Where the version lies in the protected part, every commit and checkpoint that would go is read, and the
    version's own; nothing is otherwise.

    Args:
        snapshot: the newest version of the table.
        listing: its whole log.
        version: of the checkpoint that stays.
    """
    if version >= protected_before(snapshot):
        return True
    try:
        return all(_is_known(protocol) for protocol in _protocols(snapshot.store, listing, version))
    except (CorruptLogError, ObjectNotFoundError):
        return False  # what is damaged, or was just deleted by somebody else, says nothing


def _protocols(store: LogStore, listing: LogListing, version: int) -> Iterator[Protocol]:
    for files in listing.checkpoints:
        if files.version <= version:
            found, _ = checkpoint_protocol_and_metadata(CheckpointReader.open(store, files))
            if found is not None:
                yield found
    commits = [file for file in listing.commits if file.version <= version]
    for start in range(0, len(commits), _COMMITS_AT_ONCE):
        for commit in read_commits(store, commits[start : start + _COMMITS_AT_ONCE]):
            found, _ = commit.protocol_and_metadata()
            if found is not None:
                yield found


def _is_known(protocol: Protocol) -> bool:
    return (
        protocol.min_reader_version <= MAX_READER_VERSION
        and protocol.min_writer_version <= MAX_WRITER_VERSION
        and all(
            name in FEATURES and WriterKind.CLEANUP in FEATURES[name].writable_by
            for name in supported_features(protocol)
        )
    )
