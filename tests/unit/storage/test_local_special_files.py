"""A pipe or a device in a local table neither hangs its readers nor fills their memory."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CommitRejectedError, MissingDataFileError, ObjectNotFoundError, StorageError
from delta_core.log.log_path import commit_path
from delta_core.storage import local
from delta_core.storage.local import LocalLogStore


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    def hangs(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


_SPECIAL = pytest.mark.parametrize("make", [_pipe, _endless])


@_SPECIAL
def test_what_is_no_file_is_not_there(tmp_path: Path, make: Callable[[Path], None]) -> None:
    store = LocalLogStore(tmp_path)
    make(tmp_path / "x")
    for read in (store.read, store.head, store.open_input, store.open_whole):
        with pytest.raises(ObjectNotFoundError):
            read("x")
    assert store.list_directory("") == []


def test_a_pipe_cannot_be_made_durable_and_says_so(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(StorageError):
        LocalLogStore(tmp_path).persist(["x"])


def test_no_more_is_read_than_the_file_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalLogStore(tmp_path)
    (tmp_path / "x").write_bytes(b"12345")
    real, asked = os.read, []

    def grow_then_read(descriptor: int, size_bytes: int) -> bytes:
        with (tmp_path / "x").open("ab") as file:
            file.write(b"more")
        asked.append(size_bytes)
        return real(descriptor, min(size_bytes, 2))

    monkeypatch.setattr(local.os, "read", grow_then_read)
    assert store.read("x") == b"12345"
    assert asked == [5, 3, 1]
    (tmp_path / "empty").write_bytes(b"")
    monkeypatch.undo()
    assert store.read("empty") == b""


@_SPECIAL
def test_a_hint_that_is_no_file_is_no_hint(tmp_path: Path, make: Callable[[Path], None]) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    make(tmp_path / "t/_delta_log/_last_checkpoint")
    assert DeltaTable(tmp_path / "t").version() == 0


def test_a_data_file_that_is_a_pipe_is_missing(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    os.mkfifo(tmp_path / "t/part.parquet")
    add = {"path": "part.parquet", "partitionValues": {}, "size": 100, "modificationTime": 1}
    lines = [{"commitInfo": {}}, {"add": {**add, "dataChange": True}}]
    (tmp_path / "t" / commit_path(1)).write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(MissingDataFileError):
        DeltaTable(tmp_path / "t").to_pyarrow_table()


@_SPECIAL
def test_a_version_that_is_no_file_stops_a_writer(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """It lost version 1, and looks for the tail."""
    table = DeltaTable.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}), mode="append")
    make(tmp_path / "t" / commit_path(2))
    with pytest.raises(CommitRejectedError, match="special file"):
        write_deltalake(table, pa.table({"a": [2]}), mode="append")
