"""Deleting files: the task function of vacuum."""

from __future__ import annotations

from delta_core.errors import ObjectNotFoundError
from delta_core.execution.executor import JsonObject
from delta_core.storage.lent import task_store


def delete_files(task: JsonObject) -> JsonObject:
    """Delete the files that are still those that were planned.

    A file whose size or time differs was written since and is kept; one that is gone is no error. Two
    requests for each file.

    Args:
        task: `table_uri` and `files`, each `[path, size_bytes, modified_ms]`.

    Returns:
        `deleted` and `bytes`, and `kept`: paths of files that had changed.

    Raises:
        StorageError: a file could not be deleted.
    """
    store = task_store(task["table_uri"])
    deleted = size_total = 0
    kept: list[str] = []
    for path, size_bytes, modified_ms in task["files"]:
        try:
            found = store.head(path)
        except ObjectNotFoundError:
            continue
        if (found.size_bytes, found.modified_ms) != (size_bytes, modified_ms):
            kept.append(path)
            continue
        store.delete(path)
        deleted += 1
        size_total += size_bytes
    return {"deleted": deleted, "bytes": size_total, "kept": kept}
