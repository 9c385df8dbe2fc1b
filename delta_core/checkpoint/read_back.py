"""What a checkpoint holds, and whether it may be deleted.

A checkpoint may be all that is left of the versions before it, and another writer may have put its own
under the same name at any time. So one is deleted only while it is known to be ours, and the log is read
without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from delta_core.actions import Metadata, Protocol
from delta_core.errors import ObjectNotFoundError
from delta_core.log.checkpoint_reader import CheckpointPart, CheckpointReader
from delta_core.log.listing import CheckpointFiles, list_log
from delta_core.log.log_path import LogFileKind
from delta_core.replay.state import checkpoint_protocol_and_metadata
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import without_cache
from delta_core.storage.log_store import LogStore, ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a checkpoint was found to hold.

    Attributes:
        num_rows: its actions of every kind.
        num_add_files, total_bytes: the live files, and their sizes together.
    """

    protocol: Protocol | None
    metadata: Metadata | None
    num_rows: int
    num_add_files: int
    total_bytes: int

    def difference(self, snapshot: Snapshot) -> str | None:
        """Where it is not the snapshot's state, or None.

        Tombstones and application transactions expire, so two sound checkpoints may differ in them.
        """
        files = snapshot.files
        if (self.num_add_files, self.total_bytes) != (files.num_files, files.total_bytes):
            return (
                f"Expected {files.num_files} files of {files.total_bytes} bytes, read back "
                f"{self.num_add_files} of {self.total_bytes}."
            )
        if self.protocol != snapshot.protocol:
            return f"Its protocol is {self.protocol}, and the version's is {snapshot.protocol}."
        if self.metadata != snapshot.metadata:
            return "Its metadata is not the version's."
        return None


def read_contents(store: LogStore, info: ObjectInfo) -> Contents:
    """Read a classic checkpoint: its footer and two columns; past a cache, which may have another one.

    Raises:
        CorruptLogError: it cannot be read.
    """
    part = CheckpointPart(without_cache(store), info)
    files = CheckpointFiles(version=0, kind=LogFileKind.CLASSIC_CHECKPOINT, parts=(info,))
    protocol, metadata = checkpoint_protocol_and_metadata(CheckpointReader(files, [part]))
    count = total = 0
    for group in part.row_groups_with("add"):
        for rows in part.stream(group, "add", ["path", "size"]):
            count += len(rows) - pc.struct_field(rows, "path").null_count
            total += pc.sum(pc.struct_field(rows, "size")).as_py() or 0
    return Contents(
        protocol=protocol,
        metadata=metadata,
        num_rows=part.metadata.num_rows,
        num_add_files=count,
        total_bytes=total,
    )


def latest_without(store: LogStore, path: str) -> int | None:
    """The newest version that the log is read to without a checkpoint; one listing.

    -1 when nothing else is in the log, None when versions are missing then.
    """
    listing = list_log(store)
    others = [item.version for item in listing.checkpoints if path not in item.names]
    commits = [commit.version for commit in listing.commits]
    latest = max([*others, *commits], default=-1)
    after = max(others, default=-1)
    return latest if sum(version > after for version in commits) == latest - after else None


def delete_unchanged(store: LogStore, info: ObjectInfo) -> bool:
    """Delete an object if it is still the one that was seen. Two requests.

    Returns:
        False when it is another one now, or gone.
    """
    try:
        found = store.head(info.path)
    except ObjectNotFoundError:
        return False
    if found != info or found.etag != info.etag:
        return False
    store.delete(info.path)
    return True
