"""What a vacuum must keep."""

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
"""What says which files of the store a file of the table needs."""

_COMMITS_AT_ONCE = 64


class LoggedRemoves:
    """What the commits since a cutoff have removed, of those that a checkpoint stands for.

    Tombstones may be missing from a checkpoint although they are young: the table's retention was shorter
    when it was written, or its writer's clock was ahead. So vacuum takes no checkpoint's word for it.
    """

    def __init__(self, *, cutoff_ms: int) -> None:
        self._cutoff_ms = cutoff_ms
        self._read_up_to = -1
        self._keys: FileKeys | None = None

    def keys(self, snapshot: Snapshot) -> FileKeys:
        """Keys of the removed files, with those of their deletion vectors.

        One listing and one request for each commit since the cutoff that no earlier call has read; none
        for a snapshot that is read from the commits alone.

        Raises:
            MaintenanceError: which file a deletion vector is in cannot be told.
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

    Those are the live files and the ones removed since the cutoff, each with the file of its deletion
    vector, whatever features the protocol lists. Files of change data are not among them: see
    `change_data_to_keep`.

    Args:
        snapshot: the newest version.
        cutoff_ms: milliseconds since 1970.
        removes: of the same cutoff, or an earlier one.

    Raises:
        MaintenanceError: which file a deletion vector is in cannot be told.
    """
    keys = FileKeys(root_uri=snapshot.store.uri)
    keys.add_all(removes.keys(snapshot))
    for batch in snapshot.files.batches(NAMED_COLUMNS):
        keys.add_files(batch)
    keys.add_files(snapshot.tombstones(since_ms=cutoff_ms))
    return keys


def removed_keys(remove: RemoveFile, *, root_uri: str) -> set[str]:
    """Keys of the files that a remove lets go: the data file, and the file of its deletion vector.

    Raises:
        MaintenanceError: which file the vector is in cannot be told.
    """
    paths = protected_keys([remove.path], root_uri=root_uri)
    return paths | deletion_vector_keys(remove.deletion_vector, root_uri=root_uri)


def change_data_to_keep(snapshot: Snapshot, *, cutoff_ms: int, after_version: int = -1) -> FileKeys:
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
    keys = FileKeys(root_uri=snapshot.store.uri)
    keys.add_paths(found)
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
    """The commits that are in the log up to the snapshot, oldest first. One listing."""
    return [commit for commit in list_log(snapshot.store).commits if commit.version <= snapshot.version]
