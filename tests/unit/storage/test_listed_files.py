"""Listings in columns say what walks say, and unchanged files are deleted as one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from delta_core.errors import PathEscapeError, StorageError, StorePermissionError
from delta_core.storage import listed_files
from delta_core.storage.cached import CachedLogStore
from delta_core.storage.disk_cache import DiskCache
from delta_core.storage.listed_files import ListedRows, walk_batches
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore, ObjectInfo, stand_in
from delta_core.storage.name_columns import is_ascii, name_bytes, name_column, names_in
from delta_core.storage.object_store import Clients, ObjectLogStore
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.unchanged import Deleted, SeenObject, delete_one_by_one, delete_unchanged
from tests.support.faulty_store import FaultyStore

NAMES = [
    "x.parquet",
    "p=1/a",
    "p=1/q=2/b",
    "p=1/q=2/c d%20\n.bin",
    "_delta_log/0.json",
    "p=ü/u\u0308",
    os.fsdecode(b"p=\xff/x\xfe.parquet"),
]


def listed(store: LogStore, path: str = "") -> list[tuple[str, int, int]]:
    """What the columns say, as rows."""
    return sorted(
        row
        for batch in walk_batches(store, path)
        for row in zip(
            names_in(batch.paths()), batch.size_bytes.tolist(), batch.modified_ms.tolist(), strict=True
        )
    )


def walked(store: LogStore, path: str = "") -> list[tuple[str, int, int]]:
    return sorted((info.path, info.size_bytes, info.modified_ms) for info in store.walk(path))


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    """A folder with names of all kinds, and with what is not listed."""
    root = tmp_path / "t"
    for number, name in enumerate(NAMES):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * number)
        os.utime(root / name, ns=(0, 1_700_000_000_123_456_789 + number))
    os.utime(root / "x.parquet", ns=(0, -1_500_000))  # before 1970
    (root / "p=1" / ".tmp-1").touch()
    (root / "empty").mkdir()
    (root / "link").symlink_to(root / "x.parquet")
    (root / "p=1" / "folder").symlink_to(root / "p=1" / "q=2")
    os.mkfifo(root / "pipe")
    return LocalLogStore(root)


@pytest.mark.parametrize("rows", [1, 2, 1 << 15])
def test_a_folder_is_listed_as_it_is_walked(
    store: LocalLogStore, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_files, "BATCH_ROWS", rows)
    monkeypatch.setattr("delta_core.storage.local_many.BATCH_ROWS", rows)
    for path in ("", "p=1", "p=1/q=2", "absent", "x.parquet", "link", "p=1/folder"):
        assert listed(store, path) == walked(store, path)
    assert [path for path, *_ in listed(store)] == sorted(NAMES)
    assert max(len(batch) for batch in walk_batches(store)) <= rows


def test_a_path_that_climbs_is_refused(store: LocalLogStore) -> None:
    with pytest.raises(PathEscapeError):
        list(walk_batches(store, "../t"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_is_an_error(store: LocalLogStore) -> None:
    (store.root / "p=1").chmod(0)
    try:
        with pytest.raises(StorePermissionError, match="list"):
            listed(store)
    finally:
        (store.root / "p=1").chmod(0o755)


def test_objects_are_listed_as_they_are_walked(tmp_path: Path) -> None:
    memory = MemoryStore()
    clients = Clients(lambda: (memory, memory), proved=True, place="memory")
    objects = ObjectLogStore(parse_remote_uri("s3://bucket/t"), clients)
    beside = ObjectLogStore(parse_remote_uri("s3://bucket/t2"), clients)
    for name in NAMES[:3] + NAMES[4:6]:
        objects.put(name, b"1")
    beside.put("other", b"1")
    cached = CachedLogStore(objects, DiskCache(tmp_path, max_bytes=1 << 20))
    for store in (objects, cached):
        assert [path for path, *_ in listed(store)] == sorted(NAMES[:3] + NAMES[4:6])
        assert listed(store) == walked(store)
        assert listed(store, "p=1") == walked(store, "p=1")
        assert stand_in(store, "walk_batches") is not None


def test_a_store_without_columns_is_walked(store: LocalLogStore) -> None:
    faulty = FaultyStore(store)
    assert stand_in(faulty, "walk_batches") is None
    assert listed(faulty) == walked(store)


def test_what_hides_files_from_walks_hides_them_from_columns(
    store: LocalLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hiding(LocalLogStore):
        def walk(self, path: str = "") -> Iterator[ObjectInfo]:
            return (info for info in super().walk(path) if info.path != "x.parquet")

    assert [path for path, *_ in listed(Hiding(store.root))] == sorted(NAMES[1:])

    def broken(self: LocalLogStore, path: str = "") -> Iterator[ObjectInfo]:
        raise StorageError("no listing today")

    own = LocalLogStore(store.root)
    own.walk = lambda path="": iter(())  # type: ignore[method-assign]
    assert listed(own) == []
    monkeypatch.setattr(LocalLogStore, "walk", broken)
    with pytest.raises(StorageError, match="today"):
        listed(store)


@given(st.lists(st.text(st.characters(exclude_characters="/\0"), max_size=5), max_size=8), st.integers(0, 8))
def test_a_column_has_any_names(names: list[str], first: int) -> None:
    column = name_column(names)
    assert names_in(column) == names
    assert column.to_pylist() == [name_bytes(name) for name in names]
    assert [bytes_ for _, bytes_ in sorted(zip(names, column.to_pylist(), strict=True))] == sorted(
        column.to_pylist()
    )
    assert is_ascii(column.slice(first)) == all(name.isascii() for name in names[first:])


def test_rows_of_a_folder_go_on_in_the_next_batch() -> None:
    rows = ListedRows()
    rows.add("a/1", 1, 10)
    first = rows.take()
    rows.add("a/2", 2, 20)
    rows.add("3", 3, 30)
    second = rows.take()
    assert names_in(first.paths()) == ["a/1"]
    assert names_in(second.paths()) == ["a/2", "3"]
    assert names_in(second.paths(np.array([1]))) == ["3"]


# ---------------------------------------------------------------- deleting


def seen(store: LogStore) -> list[SeenObject]:
    return [(info.path, info.size_bytes, info.modified_ms) for info in store.walk()]


CHANGES = {
    "nothing": lambda file: None,
    "larger": lambda file: file.write_bytes(b"longer than before"),
    "touched": lambda file: os.utime(file, (5, 5)),
    "gone": lambda file: file.unlink(),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a broken link": lambda file: (file.unlink(), file.symlink_to("nowhere")),
    "its folder is gone": lambda file: file.parent.rename(file.parents[1] / "moved"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_what_is_unchanged_is_deleted(tmp_path: Path, change: str) -> None:
    found: list[tuple[Deleted, list[str]]] = []
    for number, delete in enumerate((delete_unchanged, delete_one_by_one)):
        root = tmp_path / str(number)
        for name in ("d/1", "d/2", "e/f/3", "4"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(b"x")
        store = LocalLogStore(root)
        before = seen(store)
        CHANGES[change](root / "d/1")
        done = delete(store, sorted(before))
        found.append(
            (done, sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()))
        )
    assert found[0][1] == found[1][1], "what is left"
    assert (found[0][0].files, found[0][0].size_bytes) == (found[1][0].files, found[1][0].size_bytes)
    if change in ("larger", "touched"):
        assert found[0][0].changed == ("d/1",)
    assert found[0][0].files == {"nothing": 4, "its folder is gone": 2}.get(change, 3)


def test_a_link_in_place_of_a_file_stays_even_if_it_leads_to_one_like_it(tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path / "t")
    store.put("d/1", b"x")
    before = seen(store)
    (tmp_path / "t/d/1").rename(tmp_path / "outside")
    (tmp_path / "t/d/1").symlink_to(tmp_path / "outside")
    assert delete_unchanged(store, before) == Deleted(changed=("d/1",))
    assert (tmp_path / "outside").exists()


def test_nothing_is_deleted_behind_a_link_on_the_way(tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path / "t")
    store.put("d/1", b"x")
    before = seen(store)
    (tmp_path / "t/d").rename(tmp_path / "outside")
    (tmp_path / "t/d").symlink_to(tmp_path / "outside")
    with pytest.raises(PathEscapeError):
        delete_unchanged(store, before)
    assert (tmp_path / "outside/1").exists()
    (tmp_path / "outside/1").write_bytes(b"other")
    assert delete_unchanged(store, before) == Deleted(changed=("d/1",)), "another file in a folder elsewhere"
    for path in ("../outside/1", "d/../x", "/etc/passwd", "d//1", "d/.", "d/a\0"):
        with pytest.raises(PathEscapeError):
            delete_unchanged(store, [(path, 1, 1)])


def test_what_makes_deletions_fail_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalLogStore(tmp_path)
    store.put("a", b"x")

    class Refusing(LocalLogStore):
        def delete(self, path: str) -> None:
            raise StorageError("not here")

    with pytest.raises(StorageError, match="not here"):
        delete_unchanged(Refusing(tmp_path), seen(store))
    faulty = FaultyStore(store)
    assert delete_unchanged(faulty, seen(store)).files == 1
    assert faulty.deleted == ["a"]
    store.put("a", b"x")

    def head(self: LocalLogStore, path: str) -> Any:
        raise StorageError("no look")

    monkeypatch.setattr(LocalLogStore, "head", head)
    with pytest.raises(StorageError, match="no look"):
        delete_unchanged(store, seen(store))


@pytest.mark.skipif(os.geteuid() == 0, reason="root deletes everything")
def test_a_file_that_may_not_be_deleted_is_an_error(tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path)
    store.put("d/1", b"x")
    (tmp_path / "d").chmod(0o555)
    try:
        with pytest.raises(StorePermissionError, match="'d/1'"):
            delete_unchanged(store, seen(store))
    finally:
        (tmp_path / "d").chmod(0o755)


@pytest.mark.parametrize("rows", [1, 2, 1 << 15])
def test_links_are_reported_and_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr("delta_core.storage.local_many.BATCH_ROWS", rows)
    (tmp_path / "t" / "a").mkdir(parents=True)
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "t" / "a" / "own").write_bytes(b"x")
    for name, target in (("a/file", "file"), ("a/_delta_log", "t"), ("link", "missing")):
        (tmp_path / "t" / name).symlink_to(tmp_path / target)
    store = LocalLogStore(tmp_path / "t")
    batches = list(walk_batches(store))
    assert sorted(link for batch in batches for link in batch.links) == ["a/_delta_log", "a/file", "link"]
    assert [path for path, *_ in listed(store)] == ["a/own"]
    assert all(len(batch) <= rows for batch in batches)
