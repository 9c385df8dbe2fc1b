"""The private directory that an external sort spills its rows to."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core.errors import DeltaError, StorageError, StorageFullError
from delta_core.execution.executor import JsonObject
from delta_core.storage.local_system import translated
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import local_root
from delta_core.storage.task_stores import task_store

_LOGGER = logging.getLogger(__name__)
_PREFIX = "deltaward-spill-"


@contextmanager
def local_spill() -> Iterator[dict[str, Any]]:
    """A directory of this machine, below `TMPDIR`, that only this user can access. It is always removed."""
    try:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
    except OSError as error:
        raise _not_spilled(error, "temporary files") from error
    try:
        yield {"uri": folder, "directory": ""}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def shared_spill(store: LogStore) -> Iterator[dict[str, Any]]:
    """A directory below the table, which every worker of a cluster can access; removed at the end.

    When the driver is killed, the directory remains unreferenced until vacuum deletes it.
    """
    directory = f"{_PREFIX}{uuid.uuid4()}"
    try:
        yield {"uri": store.uri, "directory": directory}
    finally:
        _remove(store, directory)


def spill_output(place: JsonObject, name: str) -> AbstractContextManager[pa.NativeFile]:
    """A writer for a file in the spill directory.

    Raises:
        StorageFullError: the device has no space left.
        StorageError: the file cannot be written for another reason.
    """
    store = task_store(place["uri"])
    root = local_root(store)
    if root is None:
        return store.open_output(_path(place, name))
    # Not through the store, which would sync the file to disk: a spill file is useless after a crash.
    return _local_output(root / _path(place, name))


@contextmanager
def _local_output(path: Path) -> Iterator[pa.NativeFile]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with pa.OSFile(os.fsencode(path), "wb") as sink:
            yield sink
    except OSError as error:
        raise _not_spilled(error, str(path)) from error


def _not_spilled(error: OSError, path: str) -> StorageError:
    translation = translated(error, path, "spill rows to")
    error_class = StorageFullError if isinstance(translation, StorageFullError) else StorageError
    return error_class(
        translation.problem,
        cause=translation.cause,
        fix="Make room there, or set TMPDIR to another directory.",
    )


def spill_input(place: JsonObject, name: str) -> pa.NativeFile:
    """A reader of a file in the spill directory."""
    return task_store(place["uri"]).open_input(_path(place, name))


def _path(place: JsonObject, name: str) -> str:
    return f"{place['directory']}/{name}" if place["directory"] else name


def _remove(store: LogStore, directory: str) -> None:
    root = local_root(store)
    if root is not None:
        shutil.rmtree(root / directory, ignore_errors=True)
        return
    try:
        for info in list(store.walk(directory)):
            with contextlib.suppress(FileNotFoundError):
                store.delete(info.path)
    except DeltaError as error:
        _LOGGER.warning(
            "The spill directory could not be removed; vacuum will delete it.",
            extra={"path": directory, "why": str(error)},
        )
