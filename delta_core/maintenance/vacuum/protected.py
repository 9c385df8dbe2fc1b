"""The files that a vacuum must keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from delta_core.actions import Action, AddCdcFile, RemoveFile
from delta_core.actions.json_codec import decode_commit
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import CommitFile, list_log
from delta_core.maintenance.vacuum.deletion_vectors import deletion_vector_keys
from delta_core.maintenance.vacuum.file_keys import FileKeys
from delta_core.maintenance.vacuum.path_identity import protected_keys
from delta_core.snapshot.snapshot import Snapshot

NAMED_COLUMNS: Final = ("path", "deletion_vector")
"""The columns of live files and tombstones that refer to files in the store."""

_COMMITS_AT_ONCE = 64


class LoggedRemoves:
    """The files that commits since a cutoff removed, from commits that a checkpoint includes.

    A checkpoint may lack tombstones that are within the retention: the table's retention was shorter when the
    checkpoint was written, or its writer's clock was ahead. Therefore vacuum reads the commits themselves.
    """

    def __init__(self, *, cutoff_ms: int) -> None:
        self._cutoff_ms = cutoff_ms
        self._read_up_to = -1
        self._keys: FileKeys | None = None

    def keys(self, snapshot: Snapshot) -> FileKeys:
        """Keys of the removed files and of the files of their deletion vectors.

        Costs one listing, and one request for each commit since the cutoff that no earlier call has read. No
        request for a snapshot without a checkpoint.

        Raises:
            MaintenanceError: the file of a deletion vector cannot be determined.
        """
        root_uri = snapshot.store.uri
        if self._keys is None:
            self._keys = FileKeys(root_uri=root_uri)
        checkpoint = snapshot.segment.checkpoint_version
        if checkpoint is not None and checkpoint > self._read_up_to:
            actions = _actions_since(
                snapshot, cutoff_ms=self._cutoff_ms, after_version=self._read_up_to, up_to_version=checkpoint
            )
            removes = [action for action in actions if isinstance(action, RemoveFile)]
            self._keys.add_paths([remove.path for remove in removes])
            for remove in removes:
                self._keys.add_keys(deletion_vector_keys(remove.deletion_vector, root_uri=root_uri))
            self._read_up_to = checkpoint
        return self._keys


def keys_to_keep(snapshot: Snapshot, *, cutoff_ms: int, removes: LoggedRemoves) -> FileKeys:
    """Keys of the files that reading a version at or after the cutoff may need.

    These are the live files and the files removed since the cutoff, and the files of their deletion vectors,
    independent of the features in the protocol. Files of change data are not included; see
    `change_data_to_keep`.

    Args:
        snapshot: the newest version.
        cutoff_ms: the cutoff in epoch milliseconds.
        removes: the removes since the same cutoff or an earlier cutoff.

    Raises:
        MaintenanceError: the file of a deletion vector cannot be determined.
    """
    keys = FileKeys(root_uri=snapshot.store.uri)
    keys.add_all(removes.keys(snapshot))
    for batch in snapshot.files.batches(NAMED_COLUMNS):
        keys.add_files(batch)
    keys.add_files(snapshot.tombstones(since_ms=cutoff_ms))
    return keys


def removed_keys(remove: RemoveFile, *, root_uri: str) -> set[str]:
    """Keys of the files of a `remove` action: the data file and the file of its deletion vector.

    Raises:
        MaintenanceError: the file of the deletion vector cannot be determined.
    """
    paths = protected_keys([remove.path], root_uri=root_uri)
    return paths | deletion_vector_keys(remove.deletion_vector, root_uri=root_uri)


def change_data_to_keep(snapshot: Snapshot, *, cutoff_ms: int, after_version: int = -1) -> FileKeys:
    """Keys of the files in `cdc` actions of commits since the cutoff.

    Snapshots do not contain `cdc` actions, so the commits since the cutoff are read: one listing, and one
    request for each commit. An older file is among the keys only if it was committed long after it was
    written.

    Args:
        snapshot: the newest version.
        cutoff_ms: see `keys_to_keep`.
        after_version: only commits after this version are read.
    """
    paths = [
        action.path
        for action in _actions_since(snapshot, cutoff_ms=cutoff_ms, after_version=after_version)
        if isinstance(action, AddCdcFile)
    ]
    keys = FileKeys(root_uri=snapshot.store.uri)
    keys.add_paths(paths)
    return keys


def _actions_since(
    snapshot: Snapshot, *, cutoff_ms: int, after_version: int = -1, up_to_version: int | None = None
) -> Iterator[Action]:
    last = snapshot.version if up_to_version is None else up_to_version
    files = [
        commit
        for commit in commits_in_log(snapshot)
        if commit.info.modified_ms >= cutoff_ms and after_version < commit.version <= last
    ]
    for first in range(0, len(files), _COMMITS_AT_ONCE):
        for commit in read_commits(snapshot.store, files[first : first + _COMMITS_AT_ONCE]):
            yield from decode_commit(commit.data, path=commit.path)


def commits_in_log(snapshot: Snapshot) -> Sequence[CommitFile]:
    """The commit files in the log up to the snapshot's version, oldest first. Costs one listing."""
    return [commit for commit in list_log(snapshot.store).commits if commit.version <= snapshot.version]
