"""A private place for rows on their way through a sort that memory cannot hold."""

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
from delta_core.storage.local_errors import translated
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import local_root
from delta_core.storage.task_stores import task_store

_LOGGER = logging.getLogger(__name__)
_PREFIX = "deltaward-spill-"


@contextmanager
def local_spill() -> Iterator[dict[str, Any]]:
    """A directory of this machine that only this user can enter; removed in any case.

    It lies where temporary files go (`TMPDIR`).
    """
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
    """A directory below the table, which every worker of a cluster can reach; removed in any case.

    If the driver is killed on the spot it stays, unreferenced, until vacuum lists it.
    """
    directory = f"{_PREFIX}{uuid.uuid4()}"
    try:
        yield {"uri": store.uri, "directory": directory}
    finally:
        _remove(store, directory)


def spill_output(place: JsonObject, name: str) -> AbstractContextManager[pa.NativeFile]:
    """A writer for a file of the place.

    Raises:
        StorageFullError: there is no room for the rows.
        StorageError: they cannot be written there for another reason.
    """
    store = task_store(place["uri"])
    root = local_root(store)
    if root is None:
        return store.open_output(_path(place, name))
    # Past the store, which would make the file durable: nobody needs it after a crash.
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
    found = translated(error, path, "spill rows to")
    kind = StorageFullError if isinstance(found, StorageFullError) else StorageError
    return kind(found.problem, cause=found.cause, fix="Make room there, or point TMPDIR elsewhere.")


def spill_input(place: JsonObject, name: str) -> pa.NativeFile:
    """A reader of a file of the place."""
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
        _LOGGER.warning("spilled rows stay until vacuum", extra={"path": directory, "why": str(error)})
