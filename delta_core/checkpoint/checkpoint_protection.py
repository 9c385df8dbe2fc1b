"""The rules of the table feature `checkpointProtection` for log cleanup (RFC "Checkpoint Protection").

Versions before a feature was dropped may still use the feature. Clients that do not support it read the table
from a later checkpoint, as long as that checkpoint exists. Therefore the log before
`delta.requireCheckpointProtectionBeforeVersion` must be deleted in one step, or in several steps only by a
client that supports every protocol in the deleted part. Log cleanup here writes no checkpoint and deletes no
checkpoint after the version at which it stops, which the rule allows without a check of protocols. The
protocols are checked nevertheless, since an unknown feature may have requirements for cleanup.
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
from delta_core.table_features.feature import FEATURES, WriterKind
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.support import MAX_READER_VERSION, MAX_WRITER_VERSION
from delta_core.table_features.upgrade import supported_features

_FEATURE = "checkpointProtection"
_COMMITS_AT_ONCE = 64


def protected_before(snapshot: Snapshot) -> int:
    """The version before which the log is protected; 0 without protection. No request.

    A property that is not a number protects the whole log, since its meaning is unknown.
    """
    if _FEATURE not in supported_features(snapshot.protocol):
        return 0
    value = snapshot.metadata.configuration.get(CHECKPOINT_PROTECTION, "0").strip()
    return int(value) if value.isascii() and value.isdecimal() else sys.maxsize


def may_delete_log_before(snapshot: Snapshot, listing: LogListing, version: int) -> bool:
    """Whether the log before a version may be deleted while all later log files are kept.

    If the version lies in the protected part, the function reads every commit and checkpoint that would be
    deleted, and those of the version. Otherwise it reads nothing.

    Args:
        snapshot: the newest version of the table.
        listing: the table's whole log.
        version: the version of the checkpoint that stays.
    """
    if version >= protected_before(snapshot):
        return True
    try:
        return all(_is_supported(protocol) for protocol in _protocols(snapshot.store, listing, version))
    except (CorruptLogError, ObjectNotFoundError):
        return False  # the protocol of a file that is damaged or was just deleted is unknown


def _protocols(store: LogStore, listing: LogListing, version: int) -> Iterator[Protocol]:
    for files in listing.checkpoints:
        if files.version <= version:
            protocol, _ = checkpoint_protocol_and_metadata(CheckpointReader.open(store, files))
            if protocol is not None:
                yield protocol
    commits = [file for file in listing.commits if file.version <= version]
    for start in range(0, len(commits), _COMMITS_AT_ONCE):
        for commit in read_commits(store, commits[start : start + _COMMITS_AT_ONCE]):
            protocol, _ = commit.protocol_and_metadata()
            if protocol is not None:
                yield protocol


def _is_supported(protocol: Protocol) -> bool:
    return (
        protocol.min_reader_version <= MAX_READER_VERSION
        and protocol.min_writer_version <= MAX_WRITER_VERSION
        and all(
            name in FEATURES and WriterKind.CLEANUP in FEATURES[name].writable_by
            for name in supported_features(protocol)
        )
    )
