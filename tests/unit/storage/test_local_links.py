"""Nothing is written behind a link out of a local table, whatever is written, whenever the link appears."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CommitRejectedError, PathEscapeError
from delta_core.storage import local
from delta_core.storage.local import LocalLogStore


def _put_if_absent(store: LocalLogStore, path: str) -> None:
    store.put_if_absent(path, b"1")


def _put(store: LocalLogStore, path: str) -> None:
    store.put(path, b"1")


def _output(store: LocalLogStore, path: str) -> None:
    with store.open_output(path) as sink:
        sink.write(b"1")


_WRITES = pytest.mark.parametrize("write", [_put_if_absent, _put, _output])


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside" / "deeper").mkdir(parents=True)
    return tmp_path / "outside"


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    (tmp_path / "table").mkdir()
    return LocalLogStore(tmp_path / "table")


def _files(folder: Path) -> list[Path]:
    return [found for found in folder.rglob("*") if not found.is_dir()]


@_WRITES
@pytest.mark.parametrize("below", ["x", "deeper/x", "new/x", "new/newer/x"])
def test_nothing_is_written_behind_a_link(
    store: LocalLogStore, outside: Path, write: Callable[[LocalLogStore, str], None], below: str
) -> None:
    (store.root / "p=a").symlink_to(outside)
    with pytest.raises(PathEscapeError, match="symbolic link"):
        write(store, f"p=a/{below}")
    assert _files(outside) == []
    assert not (outside / "new").exists()


@_WRITES
def test_a_link_that_appears_while_a_file_is_made_gets_no_file(
    store: LocalLogStore,
    outside: Path,
    write: Callable[[LocalLogStore, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = local.open_directory
    (store.root / "p=a").mkdir()

    def open_then_swap(*args: object, **options: object) -> int:
        descriptor: int = real(*args, **options)
        (store.root / "p=a").rmdir()
        (store.root / "p=a").symlink_to(outside)
        return descriptor

    monkeypatch.setattr(local, "open_directory", open_then_swap)
    with pytest.raises(PathEscapeError, match="symbolic link"):
        write(store, "p=a/x")
    assert _files(outside) == []


@_WRITES
def test_the_root_itself_may_be_a_link(
    tmp_path: Path, outside: Path, write: Callable[[LocalLogStore, str], None]
) -> None:
    (tmp_path / "alias").symlink_to(outside)
    store = LocalLogStore(tmp_path / "alias")
    write(store, "p=a/x")
    write(store, "y")
    assert (store.read("p=a/x"), store.read("y")) == (b"1", b"1")


@_WRITES
def test_a_directory_that_may_only_be_entered_is_walked_through(
    store: LocalLogStore, write: Callable[[LocalLogStore, str], None]
) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to this user")
    store.put("a/b/first", b"1")
    (store.root / "a").chmod(0o100)
    try:
        write(store, "a/b/x")
    finally:
        (store.root / "a").chmod(0o700)
    assert store.read("a/b/x") == b"1"


def test_no_descriptor_stays_open(store: LocalLogStore, outside: Path) -> None:
    (store.root / "p=a").symlink_to(outside)
    (store.root / "file").write_bytes(b"1")

    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    for write in (_put_if_absent, _put, _output):
        write(store, f"b/{write.__name__}")
        for path in ("p=a/x", "p=a/deeper/x"):
            with pytest.raises(PathEscapeError):
                write(store, path)
    with pytest.raises(PathEscapeError):
        store.delete("file/x")
    assert opened() == before


def test_an_append_through_a_partition_that_is_a_link_writes_nothing(tmp_path: Path, outside: Path) -> None:
    root = tmp_path / "table"
    write_deltalake(root, pa.table({"p": ["b"], "a": [1]}), partition_by=["p"])
    (root / "p=a").symlink_to(outside)
    with pytest.raises(PathEscapeError, match="symbolic link"):
        write_deltalake(root, pa.table({"p": ["a"], "a": [2]}), mode="append")
    assert _files(outside) == []
    assert DeltaTable(root).to_pyarrow_table().to_pydict() == {"p": ["b"], "a": [1]}


def test_a_log_that_is_a_link_gets_no_commit_and_says_so(tmp_path: Path) -> None:
    root = tmp_path / "table"
    write_deltalake(root, pa.table({"a": [1]}))
    (root / "_delta_log").rename(tmp_path / "log")
    (root / "_delta_log").symlink_to(tmp_path / "log")
    with pytest.raises(CommitRejectedError, match="symbolic link"):
        write_deltalake(root, pa.table({"a": [2]}), mode="append")
    assert not (tmp_path / "log" / f"{1:020d}.json").exists()
    assert len(list(root.glob("*.parquet"))) == 1, "the files of a refused commit are taken away"
