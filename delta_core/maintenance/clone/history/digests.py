"""Comparison of copied objects with their sources, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack

import pyarrow as pa

from delta_core.errors import CloneError
from delta_core.execution.executor import JsonObject
from delta_core.maintenance.clone.copying import copy_executor
from delta_core.maintenance.clone.translation import Copy
from delta_core.run import Run
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.task_stores import share_with_tasks, task_store

_CHUNK_BYTES = 8 << 20


def compare_file(task: JsonObject) -> JsonObject:
    """Compare an object with its copy. Two reads, in bounded memory.

    Args:
        task: `{source_uri, path, allowed_root_uris, target_uri, to}`.

    Returns:
        `{}`.

    Raises:
        MissingDataFileError: one of the two is missing.
        CloneError: the object and its copy differ.
    """
    access = DataAccess(allowed_roots=tuple(task_store(uri) for uri in task["allowed_root_uris"]))
    with access.open(task_store(task["source_uri"]), task["path"]) as reader:
        expected = _digest(reader)
    with TABLE_ONLY.open(task_store(task["target_uri"]), task["to"]) as reader:
        actual = _digest(reader)
    if actual != expected:
        raise CloneError(
            f"The copy {task['to']!r} differs from the file {task['path']!r}.",
            cause="The two files have different bytes.",
            fix="Delete the copy and clone again.",
        )
    return {}


def compare_files(
    copies: Sequence[Copy],
    *,
    target: LogStore,
    run: Run,
) -> None:
    """Compare all copies, several at a time. Raises the errors of `compare_file`."""
    sources = {copy.source.store.uri: copy.source.store for copy in copies}
    sources |= {root.uri: root for root in run.allowed_roots}
    tasks = [
        {
            "source_uri": copy.source.store.uri,
            "path": copy.source.path,
            "allowed_root_uris": [root.uri for root in run.allowed_roots],
            "target_uri": target.uri,
            "to": copy.path,
        }
        for copy in copies
    ]
    with ExitStack() as stack:
        for store in (*sources.values(), target):
            stack.enter_context(share_with_tasks(store))
        for _ in copy_executor(copies, target, run).map(compare_file, tasks):
            pass


def _digest(reader: pa.NativeFile) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    while chunk := reader.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.digest()
