"""The hint says what it says, and nothing when it makes no sense."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from delta_core.log.canonical_json import json_checksum
from delta_core.log.last_checkpoint import (
    MAX_HINT_BYTES,
    LastCheckpoint,
    read_last_checkpoint,
    write_last_checkpoint,
)
from delta_core.log.log_path import LAST_CHECKPOINT_PATH, MAX_VERSION
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore
from tests.support.counting_store import CountingStore

WHOLE = LastCheckpoint(version=7, size=5, parts=3, size_bytes=99, num_add_files=2)


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    return LocalLogStore(tmp_path)


def test_what_is_written_is_read(store: LocalLogStore) -> None:
    write_last_checkpoint(store, WHOLE)
    assert read_last_checkpoint(store) == WHOLE
    fields = {"version": 7, "size": 5, "parts": 3, "sizeInBytes": 99, "numOfAddFiles": 2}
    assert json.loads(store.read(LAST_CHECKPOINT_PATH)) == {**fields, "checksum": json_checksum(fields)}
    write_last_checkpoint(store, LastCheckpoint(version=0, size=0))
    assert read_last_checkpoint(store) == LastCheckpoint(version=0, size=0)
    fields = {"version": 0, "size": 0}
    assert json.loads(store.read(LAST_CHECKPOINT_PATH)) == {**fields, "checksum": json_checksum(fields)}


@pytest.mark.parametrize("version", [None, "7", 7.0, True, -1, MAX_VERSION + 1])
def test_a_version_that_is_none(store: LocalLogStore, version: Any) -> None:
    store.put(LAST_CHECKPOINT_PATH, json.dumps({"version": version}).encode())
    assert read_last_checkpoint(store) is None


@pytest.mark.parametrize("version", [0, MAX_VERSION])
def test_the_first_and_the_last_version(store: LocalLogStore, version: int) -> None:
    store.put(LAST_CHECKPOINT_PATH, json.dumps({"version": version, "size": "many"}).encode())
    assert read_last_checkpoint(store) == LastCheckpoint(version=version)


@pytest.mark.parametrize("kind", [LocalLogStore, CountingStore])
def test_the_largest_hint(tmp_path: Path, kind: type[LocalLogStore]) -> None:
    store: LogStore = kind(tmp_path)
    fields = json.dumps({"version": 7}).encode()
    store.put(LAST_CHECKPOINT_PATH, fields + b" " * (MAX_HINT_BYTES - len(fields)))
    assert read_last_checkpoint(store) == LastCheckpoint(version=7)
    store.put(LAST_CHECKPOINT_PATH, fields + b" " * (MAX_HINT_BYTES + 1 - len(fields)))
    assert read_last_checkpoint(store) is None


def test_a_file_of_any_size_is_not_read_whole(store: LocalLogStore) -> None:
    store.put(LAST_CHECKPOINT_PATH, b"")
    os.truncate(store.root / LAST_CHECKPOINT_PATH, 8 << 30)
    tracemalloc.start()
    try:
        assert read_last_checkpoint(store) is None
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_HINT_BYTES
    finally:
        tracemalloc.stop()


def test_every_hint_has_its_checksum(store: LocalLogStore) -> None:
    """PROTOCOL.md, "Last Checkpoint File Schema": writers are encouraged to write it."""
    write_last_checkpoint(store, WHOLE)
    written = json.loads(store.read(LAST_CHECKPOINT_PATH))
    assert written["checksum"] == json_checksum(written)
    store.put(LAST_CHECKPOINT_PATH, json.dumps({**written, "size": 8}).encode())
    assert read_last_checkpoint(store) is None
