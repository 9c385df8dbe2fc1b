"""What only a local store must do: durability, links, permissions, leftovers."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from delta_core.errors import (
    AmbiguousWriteError,
    NameBlockedError,
    NotWrittenError,
    ObjectExistsError,
    ObjectNotFoundError,
    PathEscapeError,
    StorageError,
    StorageFullError,
    StorePermissionError,
    UnsafeStoreError,
)
from delta_core.storage import local
from delta_core.storage.local import LocalLogStore
from delta_core.storage.open import local_root, open_store


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    return LocalLogStore(tmp_path / "table")


def _leftovers(store: LocalLogStore) -> list[Path]:
    return list(store.root.rglob(".tmp-*"))


def test_synced_file_then_directory_then_new_parents(
    store: LocalLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def record(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(local.os, "fsync", record)
    store.put_if_absent("_delta_log/a.json", b"x")
    root = str(store.root)
    assert synced[:2] == [str(store.root.parent), root]
    assert Path(synced[2]).name.startswith(".tmp-")
    assert synced[3:] == [f"{root}/_delta_log"]
    synced.clear()
    with store.open_output("p=1/part.bin") as sink:
        sink.write(b"x")
    assert synced[0] == root
    assert Path(synced[1]).name.startswith(".tmp-")
    assert synced[2:] == [f"{root}/p=1"]
    assert _leftovers(store) == []


def test_persist_flushes_the_file_and_every_directory_up_to_the_root(
    store: LocalLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store.root / "job" / "p=1"
    folder.mkdir(parents=True)
    (folder / "part.parquet").write_bytes(b"x")
    synced: list[str] = []
    monkeypatch.setattr(local.os, "fsync", lambda d: synced.append(os.readlink(f"/proc/self/fd/{d}")))
    store.persist(["job/p=1/part.parquet"])
    names = ("job/p=1/part.parquet", "job/p=1", "job", "")
    wanted = [*(str(store.root / name) for name in names), str(store.root.parent)]
    assert synced == wanted


def test_lost_answer_of_a_link_that_was_made(store: LocalLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link_then_fail(source: Path, target: Path) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(local.os, "link", link_then_fail)
    store.put_if_absent("x", b"mine")
    assert store.read("x") == b"mine"
    assert _leftovers(store) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [(errno.EPERM, UnsafeStoreError), (errno.EOPNOTSUPP, UnsafeStoreError), (errno.EIO, AmbiguousWriteError)],
)
def test_failing_link(
    store: LocalLogStore, monkeypatch: pytest.MonkeyPatch, code: int, expected: type[StorageError]
) -> None:
    def fail(source: Path, target: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(local.os, "link", fail)
    with pytest.raises(expected):
        store.put_if_absent("x", b"1")
    assert list(store.root.iterdir()) == []


def test_what_reads_back_after_a_failed_flush_is_durable_only_once_it_is_flushed(
    store: LocalLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("_delta_log/a", b"")
    flush, failing = local._sync_directory, [store.root / "_delta_log"]

    def fail(directory: str) -> None:
        if Path(directory) in failing:
            raise OSError(errno.EIO, "Input/output error")
        flush(directory)

    monkeypatch.setattr(local, "_sync_directory", fail)
    with pytest.raises(AmbiguousWriteError, match="could not be made durable"):
        store.put_if_absent("_delta_log/x", b"1")
    assert store.read("_delta_log/x") == b"1"
    for directory in (store.root / "_delta_log", store.root, store.root.parent):
        failing[:] = [directory]
        with pytest.raises(StorageError, match="Could not flush"):
            store.persist(["_delta_log/x"])
    failing.clear()
    store.persist(["_delta_log/x"])


def test_full_disk_leaves_nothing(store: LocalLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.put("first", b"")
    monkeypatch.setattr(local.os, "fsync", fail)
    with pytest.raises(StorageError, match="No space left"):
        store.put_if_absent("x", b"1")
    with pytest.raises(StorageError, match="No space left"), store.open_output("y") as sink:
        sink.write(b"1")
    assert [info.path for info in store.walk()] == ["first"]
    assert _leftovers(store) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOSPC, StorageFullError),
        (errno.EDQUOT, StorageFullError),
        (errno.EIO, NotWrittenError),
        (errno.EMFILE, NotWrittenError),
        (errno.EROFS, StorePermissionError),
    ],
)
def test_what_fails_before_the_name_is_given_was_not_written(
    store: LocalLogStore, monkeypatch: pytest.MonkeyPatch, code: int, expected: type[StorageError]
) -> None:
    def fail(descriptor: int, data: bytes) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(local.os, "write", fail)
    for write in (store.put_if_absent, store.put):
        with pytest.raises(StorageError) as caught:
            write("x", b"1")
        assert type(caught.value) is expected
    assert list(store.root.iterdir()) == []


def test_a_file_where_a_directory_must_be_blocks_the_name(store: LocalLogStore) -> None:
    store.put("a", b"1")
    for path in ("a/x", "a/b/x"):
        for write in (store.put_if_absent, store.put):
            with pytest.raises(NameBlockedError, match="name of a directory"):
                write(path, b"1")
    with pytest.raises(StorageError), store.open_output("a/x"):
        pass
    assert [info.path for info in store.walk()] == ["a"]


def test_links_are_neither_walked_nor_deleted_through(store: LocalLogStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"1")
    store.put("inside", b"1")
    (store.root / "way").symlink_to(outside)
    (store.root / "file").symlink_to(outside / "precious")
    assert [info.path for info in store.walk()] == ["inside"]
    with pytest.raises(PathEscapeError):
        store.delete("way/precious")
    store.delete("file")
    assert (outside / "precious").exists()
    assert not (store.root / "file").is_symlink()


def test_a_commit_behind_a_link_is_listed(store: LocalLogStore, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"12")
    store.put("_delta_log/a", b"1")
    (store.root / "_delta_log/b").symlink_to(tmp_path / "elsewhere")
    assert [info.path for info in store.list_directory("_delta_log")] == ["_delta_log/a", "_delta_log/b"]
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("_delta_log/b", b"x")


def test_nothing_is_replaced_whenever_another_writer_comes(
    store: LocalLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one creates the object before the first call to the system, before the second and so on."""
    names = ("open", "stat", "lstat", "link", "rename", "replace", "unlink")
    real = {name: getattr(os, name) for name in names}
    calls: list[str] = []
    expected: dict[int, bytes] = {}
    comes_at = 0

    def intercepted(name: str) -> Callable[..., object]:
        def called(*arguments: object, **options: object) -> object:
            calls.append(name)
            if len(calls) == comes_at:
                with suppress(FileExistsError), open(path, "xb") as file:
                    file.write(b"theirs")
                    expected[comes_at] = b"theirs"
            return real[name](*arguments, **options)

        return called

    (store.root / "_delta_log").mkdir(parents=True)
    while len(calls) >= comes_at:
        calls.clear()
        comes_at += 1
        expected[comes_at] = b"mine"
        path = store.root / "_delta_log" / f"{comes_at}.json"
        with monkeypatch.context() as patched:
            for name in names:
                patched.setattr(os, name, intercepted(name))
            try:
                store.put_if_absent(f"_delta_log/{path.name}", b"mine")
                outcome = b"mine"
            except ObjectExistsError:
                outcome = b"theirs"
        assert (path.read_bytes(), outcome) == (expected[comes_at],) * 2, (comes_at, calls)
    assert expected[comes_at] == b"mine", "the last time nobody came"
    assert set(expected.values()) == {b"mine", b"theirs"}
    assert _leftovers(store) == []


def test_leftovers_of_a_crash_are_hidden(store: LocalLogStore) -> None:
    store.put("_delta_log/a", b"1")
    (store.root / "_delta_log/.tmp-1234").write_bytes(b"torn")
    assert [info.path for info in store.list_directory("_delta_log")] == ["_delta_log/a"]
    assert [info.path for info in store.walk()] == ["_delta_log/a"]


def test_root_is_canonical(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    store = open_store(tmp_path / "alias/")
    assert store.uri == open_store(f"file://{tmp_path}/real").uri
    assert local_root(store) == tmp_path / "real"


def test_name_that_is_no_file_is_blocked_and_a_link_to_a_file_exists(store: LocalLogStore) -> None:
    store.put("a/file", b"x")
    (store.root / "a/directory").mkdir()
    (store.root / "a/nothing").symlink_to("gone")
    (store.root / "a/circle").symlink_to("circle")
    (store.root / "a/link").symlink_to("file")
    for name in ("directory", "nothing", "circle"):
        with pytest.raises(NameBlockedError, match=name):
            store.put_if_absent(f"a/{name}", b"y")
    for name in ("file", "link"):
        with pytest.raises(ObjectExistsError):
            store.put_if_absent(f"a/{name}", b"y")
    assert _leftovers(store) == []


def test_a_name_too_long_for_a_file_is_nobodys(tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path)
    for read in (store.read, store.head, store.open_input):
        with pytest.raises(ObjectNotFoundError):
            read("x" * 5000)
