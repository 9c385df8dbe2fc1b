"""Many files become durable by one flush of their file system; a few, or where there is none, each."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ObjectNotFoundError, StorageError
from delta_core.storage import local, local_system
from delta_core.storage.local import LocalLogStore
from delta_core.storage.local_system import MANY_FILES, FileSystemFlush


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was flushed: `all` for the file system, else names of files and directories."""
    seen: list[str] = []
    whole, file, directory = FileSystemFlush.flush, local._sync_file, local._sync_directory

    def flush_whole(flusher: FileSystemFlush) -> bool:
        seen.append("all")
        return whole(flusher)

    def flush_file(path: Any) -> None:
        seen.append(os.path.basename(path))
        file(path)

    def flush_directory(path: Any) -> None:
        seen.append(os.path.basename(path) + "/")
        directory(path)

    monkeypatch.setattr(FileSystemFlush, "flush", flush_whole)
    monkeypatch.setattr(local, "_sync_file", flush_file)
    monkeypatch.setattr(local, "_sync_directory", flush_directory)
    return seen


def rows(partitions: int) -> pa.Table:
    return pa.table({"p": [f"k{number}" for number in range(partitions)], "v": list(range(partitions))})


@pytest.mark.parametrize("partitions", [1, MANY_FILES - 1, MANY_FILES, 3 * MANY_FILES])
def test_every_file_is_durable_before_the_commit(
    tmp_path: Path, flushed: list[str], monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    put = LocalLogStore.put_if_absent
    before: list[str] = []

    def commit(store: LocalLogStore, path: str, data: bytes) -> None:
        before[:] = flushed
        put(store, path, data)

    monkeypatch.setattr(LocalLogStore, "put_if_absent", commit)
    write_deltalake(tmp_path / "t", rows(partitions), partition_by=["p"])
    live = DeltaTable(tmp_path / "t").snapshot.files.to_table(["path"])["path"].to_pylist()
    assert len(live) == partitions
    if partitions >= MANY_FILES:
        assert before.count("all") == 1
        return
    assert "all" not in before
    for path in live:
        directory, _, name = path.rpartition("/")
        assert name in before
        assert f"{directory}/" in before
    assert "t/" in before


def test_where_the_system_cannot_each_file_is_flushed(
    tmp_path: Path, flushed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileSystemFlush, "flush", lambda flusher: False)
    write_deltalake(tmp_path / "t", rows(MANY_FILES), partition_by=["p"])
    live = DeltaTable(tmp_path / "t").snapshot.files.to_table(["path"])["path"].to_pylist()
    assert {path.rpartition("/")[2] for path in live} <= set(flushed)


def test_a_disk_that_fails_at_the_flush_leaves_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(flusher: FileSystemFlush) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(FileSystemFlush, "flush", fail)
    with pytest.raises(StorageError, match="Input/output error"):
        write_deltalake(tmp_path / "t", rows(MANY_FILES), partition_by=["p"])
    assert not DeltaTable.is_deltatable(tmp_path / "t")
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_new_table_without_a_row_flushes_nothing(tmp_path: Path) -> None:
    place = tmp_path / "not" / "there yet"
    LocalLogStore(place).persist([])
    write_deltalake(place, rows(0).cast(rows(1).schema), partition_by=["p"])
    assert DeltaTable(place).version() == 0


def test_what_is_gone_is_named(tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path)
    paths = [f"{number}.parquet" for number in range(MANY_FILES + 1)]
    for path in paths[:-1]:
        with store.open_unflushed(path) as sink:
            sink.write(b"x")
    with pytest.raises(ObjectNotFoundError, match=paths[-1]):
        store.persist(paths)
    store.persist(paths[:-1])


def test_it_is_the_systems_own_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flusher = FileSystemFlush(str(tmp_path))
    assert flusher.flush() is True
    local_system._syncfs.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "uname", lambda: type("System", (), {"release": "5.7.19-old"})())
            assert flusher.flush() is False, "it would not say what failed"
    finally:
        local_system._syncfs.cache_clear()
    with pytest.raises(FileNotFoundError):
        FileSystemFlush(str(tmp_path / "not there"))


def test_who_has_not_written_through_the_store_is_flushed_file_by_file(
    tmp_path: Path, flushed: list[str]
) -> None:
    """A failure from before would not be told to a descriptor that is opened now."""
    names = [f"{number}.parquet" for number in range(MANY_FILES)]
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    LocalLogStore(tmp_path).persist(names)
    assert "all" not in flushed
    assert set(names) <= set(flushed)
