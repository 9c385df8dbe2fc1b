"""The task function of vacuum, which deletes files."""

from __future__ import annotations

from delta_core.execution.executor import JsonObject
from delta_core.maintenance.inner_tables import inner_tables, is_within
from delta_core.storage.task_stores import task_store
from delta_core.storage.unchanged import delete_unchanged


def delete_files(task: JsonObject) -> JsonObject:
    """Delete the planned files that did not change since the plan.

    A file whose size or modification time differs was written again and is kept. A file in a directory that
    has become another table is kept too. A missing file is ignored. Costs two requests for each file, and
    one for each parent directory.

    Args:
        task: `table_uri` and `files`, each file as `[path, size_bytes, modified_ms]`.

    Returns:
        `deleted` and `bytes`, and `kept`: paths of files that changed or that belong to another table.

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
