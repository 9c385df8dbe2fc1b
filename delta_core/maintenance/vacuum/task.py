"""Deleting files: the task function of vacuum."""

from __future__ import annotations

from delta_core.execution.executor import JsonObject
from delta_core.maintenance.inner_tables import inner_tables, is_within
from delta_core.storage.task_stores import task_store
from delta_core.storage.unchanged import delete_unchanged


def delete_files(task: JsonObject) -> JsonObject:
    """Delete the files that are still those that were planned.

    A file whose size or time differs was written since and is kept; one that is gone is no error. So is kept
    what lies in a folder that has become another table. Two requests for each file, and one for each folder
    on the way to it.

    Args:
        task: `table_uri` and `files`, each `[path, size_bytes, modified_ms]`.

    Returns:
        `deleted` and `bytes`, and `kept`: paths of files that had changed, or are another table's.

    Raises:
        StorageError: a file could not be deleted.
    """
    store = task_store(task["table_uri"])
    files = [(path, size_bytes, modified_ms) for path, size_bytes, modified_ms in task["files"]]
    kept: list[str] = []
    inner = inner_tables(store, (path for path, *_ in files))
    if inner:
        kept = [path for path, *_ in files if is_within(path, inner)]
        files = [file for file in files if not is_within(file[0], inner)]
    done = delete_unchanged(store, files)
    return {"deleted": done.files, "bytes": done.size_bytes, "kept": [*kept, *done.changed]}
