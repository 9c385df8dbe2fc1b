"""What a vacuum must keep."""

from __future__ import annotations

from collections.abc import Sequence

from delta_core.actions import RemoveFile
from delta_core.log.listing import list_log
from delta_core.maintenance.vacuum.path_identity import protected_keys
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot


def keys_to_keep(snapshot: Snapshot, *, cutoff_ms: int, retention_ms: int) -> set[str]:
    """Keys of the files that a version at or after the cutoff may need.

    Those are the live files and the ones removed since the cutoff. Tombstones that are older than the
    table's own retention may be missing from checkpoints, so for a longer retention the removes are
    read from the log as well, one request for each commit since the cutoff.
    """
    root_uri = snapshot.store.uri
    keys: set[str] = set()
    for batch in snapshot.files.batches(["path"]):
        keys |= protected_keys(batch.column("path").to_pylist(), root_uri=root_uri)
    tombstones = snapshot.tombstones(since_ms=cutoff_ms)
    keys |= protected_keys(tombstones["path"].to_pylist(), root_uri=root_uri)
    if retention_ms > snapshot.properties.deleted_file_retention_ms:
        keys |= protected_keys(_removed_since(snapshot, cutoff_ms), root_uri=root_uri)
    return keys


def _removed_since(snapshot: Snapshot, cutoff_ms: int) -> Sequence[str]:
    paths: list[str] = []
    for version, modified_ms in commits_in_log(snapshot):
        if modified_ms < cutoff_ms:
            continue
        paths.extend(a.path for a in commit_actions(snapshot.store, version) if isinstance(a, RemoveFile))
    return paths


def commits_in_log(snapshot: Snapshot) -> list[tuple[int, int]]:
    """(version, store time in ms) of the commits that are in the log up to the snapshot, oldest first."""
    return [
        (commit.version, commit.info.modified_ms)
        for commit in list_log(snapshot.store).commits
        if commit.version <= snapshot.version
    ]
