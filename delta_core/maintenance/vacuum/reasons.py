"""Descriptions of why each file may be deleted."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa

from delta_core.actions import RemoveFile
from delta_core.errors import MaintenanceError
from delta_core.maintenance.vacuum.file_keys import FileKeys, ListedPaths
from delta_core.maintenance.vacuum.listing import KINDS, FileKind
from delta_core.maintenance.vacuum.protected import commits_in_log, removed_keys
from delta_core.maintenance.vacuum.retention import HOUR_MS, Retention
from delta_core.numpy_columns import from_numpy, to_numpy
from delta_core.schema.arrow_values import arrow_array
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.name_columns import name_bytes

_BY_KIND = {
    FileKind.STAGING: "unfinished file of a job that ended, older than the retention",
    FileKind.CHANGE_DATA: "change data of versions from before the retention",
}


def reasons(snapshot: Snapshot, files: pa.Table, retention: Retention) -> pa.Array:
    """The reason for each file, from the `remove` actions in the log.

    Args:
        snapshot: the newest version.
        files: the files to delete, with the schema OLD_FILES, in one chunk.
        retention: the retention of the vacuum.

    Returns:
        A dictionary-encoded array of strings.
    """
    hours = f"{retention.retention_ms / HOUR_MS:g} h"
    strings = [_BY_KIND.get(kind, f"not referenced by the table, older than {hours}") for kind in KINDS]
    codes = to_numpy(files.column("kind")).astype(np.int32)
    rows = np.flatnonzero(codes == KINDS.index(FileKind.DATA))
    if len(rows):
        column = files.column("path").combine_chunks()
        # The names are large: all of them are not copied.
        paths = ListedPaths(column if len(rows) == len(codes) else column.take(from_numpy(rows)))
        removed = _removed(snapshot).match_paths(paths)
        codes[rows[removed]] = len(strings)
        strings.append(f"removed from the table, the retention of {hours} passed")
        for version, of_version in _removed_at(snapshot, paths).items():
            codes[rows[of_version]] = len(strings)
            strings.append(f"removed at version {version}, the retention of {hours} passed")
    return pa.DictionaryArray.from_arrays(from_numpy(codes), arrow_array(strings, pa.string()))


def _removed(snapshot: Snapshot) -> FileKeys:
    """Keys of the removed files. Incomplete if a deletion vector's file cannot be determined.

    Incomplete keys are acceptable, since the reasons do not decide which files are deleted.
    """
    keys = FileKeys(root_uri=snapshot.store.uri)
    with suppress(MaintenanceError):
        keys.add_files(snapshot.tombstones(since_ms=0))
    return keys


def _removed_at(snapshot: Snapshot, paths: ListedPaths) -> dict[int, list[int]]:
    """For each version in the log, the rows of the files whose newest `remove` action is in that version.

    Reads commits backwards from the newest commit until every file has a version.
    """
    versions: dict[int, list[int]] = {}
    unexplained: dict[bytes, int] | None = None
    for commit in reversed(commits_in_log(snapshot)):
        removes = [
            action
            for action in commit_actions(snapshot.store, commit.version)
            if isinstance(action, RemoveFile)
        ]
        if removes and unexplained is None:
            unexplained = {key: row for row, key in enumerate(paths.keys.to_pylist())}
        for remove in removes:
            for key in _keys_of_remove(remove, root_uri=snapshot.store.uri):
                row = (unexplained or {}).pop(name_bytes(key), None)
                if row is not None:
                    versions.setdefault(commit.version, []).append(row)
        if unexplained is not None and not unexplained:
            break
    return versions


def _keys_of_remove(remove: RemoveFile, *, root_uri: str) -> set[str]:
    with suppress(MaintenanceError):
        return removed_keys(remove, root_uri=root_uri)
    return set()
