"""Copies of objects from store to store, in parallel, with a check of each size against the log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from delta_core.errors import CloneError
from delta_core.execution.executor import Executor, JsonObject
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.clone.translation import Copy
from delta_core.run import Run
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import MAX_REQUESTS
from delta_core.storage.task_stores import share_with_tasks, task_store

_CHUNK_BYTES = 8 << 20


def copy_file(task: JsonObject) -> JsonObject:
    """Copy one object; other readers see the complete copy or none. One read and one write, bounded memory.

    Args:
        task: `{source_uri, path, allowed_root_uris, target_uri, to, size_bytes}`; a size of None is not
            checked.

    Returns:
        `{bytes}`.

    Raises:
        MissingDataFileError: the source's store does not have the object.
        CloneError: the object's size differs from the source's log, or the read ended early. No copy is left.
    """
    access = DataAccess(allowed_roots=tuple(task_store(uri) for uri in task["allowed_root_uris"]))
    source, target = task_store(task["source_uri"]), task_store(task["target_uri"])
    path = task["path"]
    with access.open(source, path) as reader:
        size = reader.size()
        if task["size_bytes"] not in (None, size):
            raise _wrong_size(path, f"The file has {size} bytes, but the log records {task['size_bytes']}.")
        with target.open_output(task["to"]) as writer:
            copied = 0
            while chunk := reader.read(_CHUNK_BYTES):
                writer.write(chunk)
                copied += len(chunk)
            if copied != size:
                raise _wrong_size(path, f"The read ended after {copied} of {size} bytes.")
    copy_bytes = target.head(task["to"]).size_bytes
    if copy_bytes != size:
        raise _wrong_size(path, f"The copy has {copy_bytes} bytes instead of {size}.")
    return {"bytes": size}


def copy_executor(copies: Sequence[Copy], target: LogStore, run: Run) -> Executor:
    """The run's executor, or threads of this process: many when a store is remote."""
    remote = target.remote or any(copy.source.store.remote for copy in copies)
    return run.executor or InlineExecutor(MAX_REQUESTS if remote else None)


def copy_files(copies: Sequence[Copy], *, target: LogStore, run: Run) -> int:
    """Copy all objects; returns the number of bytes. After a failure, no copy is running any more.

    Raises:
        DeltaError: as `copy_file`.
    """
    sources = {copy.source.store.uri: copy.source.store for copy in copies}
    sources |= {root.uri: root for root in run.allowed_roots}
    tasks = [
        {
            "source_uri": copy.source.store.uri,
            "path": copy.source.path,
            "allowed_root_uris": [root.uri for root in run.allowed_roots],
            "target_uri": target.uri,
            "to": copy.path,
            "size_bytes": copy.size_bytes,
        }
        for copy in copies
    ]
    with ExitStack() as stack:
        for store in (*sources.values(), target):
            stack.enter_context(share_with_tasks(store))
        return sum(
            int(result["bytes"]) for _, result in copy_executor(copies, target, run).map(copy_file, tasks)
        )


def _wrong_size(path: str, cause: str) -> CloneError:
    return CloneError(
        f"The file {path!r} cannot be copied.",
        cause=cause,
        fix="Restore the source to a version without the file, or recover the file.",
    )
