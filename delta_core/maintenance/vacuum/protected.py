"""What a vacuum must keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from delta_core.actions import Action, AddCdcFile, RemoveFile
from delta_core.actions.json_codec import decode_commit
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import CommitFile, list_log
from delta_core.maintenance.vacuum.path_identity import protected_keys
from delta_core.maintenance.vacuum.vectors import named_keys, vector_keys
from delta_core.snapshot.snapshot import Snapshot

NAMED_COLUMNS: Final = ("path", "deletion_vector")
"""What says which files of the store a file of the table needs."""

_COMMITS_AT_ONCE = 64


def keys_to_keep(snapshot: Snapshot, *, cutoff_ms: int, retention_ms: int) -> set[str]:
    """Keys of the files that reading a version at or after the cutoff may need.

    Those are the live files and the ones removed since the cutoff, each with the file of its deletion
    vector, whatever features the protocol lists. Tombstones that are older than the table's own retention
    may be missing from checkpoints, so for a longer retention the removes are read from the log as well, one
    request for each commit since the cutoff. Files of change data are not among them: see
    `change_data_to_keep`.

    Raises:
        MaintenanceError: which file a deletion vector is in cannot be told.
    """
    root_uri = snapshot.store.uri
    keys: set[str] = set()
    for batch in snapshot.files.batches(NAMED_COLUMNS):
        keys |= named_keys(batch, root_uri=root_uri)
    tombstones = snapshot.tombstones(since_ms=cutoff_ms)
    keys |= named_keys(tombstones, root_uri=root_uri)
    if retention_ms > snapshot.properties.deleted_file_retention_ms:
        for action in _actions_since(snapshot, cutoff_ms=cutoff_ms):
            if isinstance(action, RemoveFile):
                keys |= removed_keys(action, root_uri=root_uri)
    return keys


def removed_keys(remove: RemoveFile, *, root_uri: str) -> set[str]:
    """Keys of the files that a remove lets go: the data file, and the file of its deletion vector.

    Raises:
        MaintenanceError: which file the vector is in cannot be told.
    """
    paths = protected_keys([remove.path], root_uri=root_uri)
    return paths | vector_keys(remove.deletion_vector, root_uri=root_uri)


def change_data_to_keep(snapshot: Snapshot, *, cutoff_ms: int, after_version: int = -1) -> set[str]:
    """Keys of the files that the `cdc` actions of versions at or after the cutoff name.

    No snapshot says which they are, so the commits since the cutoff are read: one listing and one request
    for each. A file that was written before the cutoff is among them only if its commit took that long.

    Args:
        snapshot: the newest version.
        cutoff_ms: see `keys_to_keep`.
        after_version: commits up to this one are known and not read.
    """
    found = [
        action.path
        for action in _actions_since(snapshot, cutoff_ms=cutoff_ms, after_version=after_version)
        if isinstance(action, AddCdcFile)
    ]
    return protected_keys(found, root_uri=snapshot.store.uri)


def _actions_since(snapshot: Snapshot, *, cutoff_ms: int, after_version: int = -1) -> Iterator[Action]:
    files = [
        commit
        for commit in commits_in_log(snapshot)
        if commit.info.modified_ms >= cutoff_ms and commit.version > after_version
    ]
    for first in range(0, len(files), _COMMITS_AT_ONCE):
        for commit in read_commits(snapshot.store, files[first : first + _COMMITS_AT_ONCE]):
            yield from decode_commit(commit.data, path=commit.path)


def commits_in_log(snapshot: Snapshot) -> Sequence[CommitFile]:
    """The commits that are in the log up to the snapshot, oldest first. One listing."""
    return [commit for commit in list_log(snapshot.store).commits if commit.version <= snapshot.version]
