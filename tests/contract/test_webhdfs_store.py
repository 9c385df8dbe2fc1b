"""The WebHDFS store over a real HDFS: odd names, lost answers, and commits of many writers.

That it keeps the contract is seen in `test_remote_stores.py`.
"""

from __future__ import annotations

import itertools
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.dml.write import write_deltalake
from delta_core.errors import (
    AmbiguousWriteError,
    NameBlockedError,
    NotWrittenError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    WriteRefusedError,
)
from delta_core.storage.webhdfs import WebHdfsLogStore
from delta_core.table import DeltaTable
from tests.support.emulators.installation import require
from tests.support.emulators.minidfs import HdfsServer, minidfs
from tests.support.webhdfs_proxy import NameNodeProxy

pytestmark = pytest.mark.extra

COMMIT = "_delta_log/00000000000000000001.json"
NAMES = ["a b", "100%", "a%20b", "a%2520b", "x+y;z=1&w?#", "ü€😀", "[a]{b}|^`\\\"'<>,~!@$*()"]
WRITERS, COMMITS = 4, 6


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    require("minidfs")
    with minidfs(tmp_path_factory.mktemp("minidfs")) as server:
        yield server


@pytest.fixture
def proxy(hdfs: HdfsServer) -> Iterator[NameNodeProxy]:
    with NameNodeProxy(hdfs.endpoint) as proxy:
        yield proxy


def _store(hdfs: HdfsServer, endpoint: str = "") -> WebHdfsLogStore:
    options = {"webhdfs_endpoint": endpoint or hdfs.endpoint, "user": hdfs.user}
    return WebHdfsLogStore(f"hdfs://{hdfs.rpc_address}/tables/{uuid.uuid4()}", options=options)


@pytest.fixture
def store(hdfs: HdfsServer) -> WebHdfsLogStore:
    return _store(hdfs)


def _everything(hdfs: HdfsServer, store: WebHdfsLogStore, directory: str) -> list[str]:
    """All names in a directory, temporary files too."""
    path = f"/{store.uri.split('/', 3)[3]}/{directory}"
    listed = hdfs.call("GET", path, op="LISTSTATUS").document["FileStatuses"]["FileStatus"]
    return [entry["pathSuffix"] for entry in listed]


@pytest.mark.parametrize("name", NAMES)
def test_names_arrive_as_they_are(hdfs: HdfsServer, store: WebHdfsLogStore, name: str) -> None:
    store.put_if_absent(f"d {name}/{name}", b"1")
    assert store.read(f"d {name}/{name}") == b"1"
    assert [info.path for info in store.walk()] == [f"d {name}/{name}"]
    assert _everything(hdfs, store, "") == [f"d {name}"]
    store.delete(f"d {name}/{name}")
    assert list(store.walk()) == []


def test_names_that_hdfs_does_not_take(store: WebHdfsLogStore) -> None:
    store.put("file", b"1")
    for path in ("a:b", "n" * 256):
        with pytest.raises(ObjectNotFoundError):
            store.read(path)
        with pytest.raises(WriteRefusedError):
            store.put_if_absent(path, b"1")
    with pytest.raises(NameBlockedError):
        store.put_if_absent("file/below", b"1")
    for ask in (store.read, store.head, store.open_input):
        with pytest.raises(ObjectNotFoundError):
            ask("file/below")
    store.delete("file/below")
    assert store.list_directory("file/below") == []
    assert [info.path for info in store.walk()] == ["file"]


def test_a_directory_under_the_name(hdfs: HdfsServer, store: WebHdfsLogStore) -> None:
    store.put("d/inside", b"1")
    for write in (store.put_if_absent, store.put):
        with pytest.raises(NameBlockedError):
            write("d", b"x")
    with pytest.raises(StorageError):
        store.delete("d")
    assert _everything(hdfs, store, "") == ["d"]


def test_a_directory_of_several_pages(hdfs: HdfsServer, store: WebHdfsLogStore) -> None:
    store.put("l/00", b"1")
    store.put("l/zz", b"1")
    base = f"/{store.uri.split('/', 3)[3]}/l"
    for number in range(1100):
        hdfs.call("PUT", f"{base}/d{number:04}", op="MKDIRS")
    assert [info.path for info in store.list_directory("l")] == ["l/00", "l/zz"]
    assert [info.path for info in store.list_directory("l", start_after="d1098")] == ["l/zz"]
    assert len(_everything(hdfs, store, "l")) == 1102


def test_a_big_output_is_read_by_ranges(store: WebHdfsLogStore) -> None:
    data = bytes(range(256)) * 20_000
    with store.open_output("big") as sink:
        for start in range(0, len(data), 1 << 20):
            sink.write(data[start : start + (1 << 20)])
    with store.open_input("big") as source:
        for offset, length in ((len(data) - 8, 8), (0, 4), (1_234_567, 999_999), (len(data) - 1, 100)):
            source.seek(offset)
            assert source.read(length) == data[offset : offset + length]
    assert store.read("big") == data


def test_a_rename_that_the_name_node_never_saw(
    hdfs: HdfsServer, store: WebHdfsLogStore, proxy: NameNodeProxy
) -> None:
    through = WebHdfsLogStore(store.uri, options={"webhdfs_endpoint": proxy.url, "user": hdfs.user})
    proxy.once("RENAME", "lost")
    with pytest.raises(StorageError) as caught:
        through.put_if_absent(COMMIT, b"x")
    assert type(caught.value) is NotWrittenError
    assert _everything(hdfs, store, "_delta_log") == []
    through.put_if_absent(COMMIT, b"x")


def test_a_rename_whose_answer_is_lost(
    hdfs: HdfsServer, store: WebHdfsLogStore, proxy: NameNodeProxy
) -> None:
    through = WebHdfsLogStore(store.uri, options={"webhdfs_endpoint": proxy.url, "user": hdfs.user})
    proxy.once("RENAME", "landed")
    with pytest.raises(AmbiguousWriteError):
        through.put_if_absent(COMMIT, b"x")
    assert through.read(COMMIT) == b"x"
    with pytest.raises(ObjectExistsError):
        through.put_if_absent(COMMIT, b"x")
    assert _everything(hdfs, store, "_delta_log") == [COMMIT.rpartition("/")[2]]


def test_a_rename_that_arrives_late_finds_nothing_to_rename(
    hdfs: HdfsServer, store: WebHdfsLogStore, proxy: NameNodeProxy
) -> None:
    through = WebHdfsLogStore(store.uri, options={"webhdfs_endpoint": proxy.url, "user": hdfs.user})
    proxy.once("RENAME", "late")
    with pytest.raises(StorageError) as caught:
        through.put_if_absent(COMMIT, b"x")
    assert type(caught.value) is NotWrittenError
    proxy.release()
    [(status, body)] = proxy.answers
    assert status == 404
    assert json.loads(body)["RemoteException"]["exception"] == "FileNotFoundException"
    assert _everything(hdfs, store, "_delta_log") == []


def test_writers_commit_exactly_once_though_answers_are_lost(
    hdfs: HdfsServer, proxy: NameNodeProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTAWARD_CACHE_DIR", str(tmp_path))
    uri = f"hdfs://{hdfs.rpc_address}/tables/{uuid.uuid4()}"
    options = {"webhdfs_endpoint": proxy.url, "user": hdfs.user}
    row = pa.table({"writer": pa.array([-1], pa.int64()), "number": pa.array([-1], pa.int64())})
    write_deltalake(uri, row, storage_options=options)
    faults = itertools.cycle(["", "landed", "", "lost", "", "late"])
    lock = threading.Lock()

    def fault(operation: str) -> str:
        # Data files are renamed too, and a write that gives up there has committed nothing.
        with lock:
            return next(faults) if operation == "RENAME" else ""

    def write(writer: int) -> list[int]:
        landed = []
        for number in range(COMMITS):
            data = pa.table(
                {"writer": pa.array([writer], pa.int64()), "number": pa.array([number], pa.int64())}
            )
            try:
                write_deltalake(uri, data, mode="append", storage_options=options)
            except StorageError:
                continue
            landed.append(number)
        return landed

    proxy.fault = fault
    with ThreadPoolExecutor(WRITERS) as pool:
        landed = list(pool.map(write, range(WRITERS)))
    proxy.fault = lambda operation: ""
    proxy.release()
    table = DeltaTable(uri, storage_options=options)
    rows = table.to_pyarrow_table().filter(pa.compute.field("writer") >= 0).to_pylist()
    found = sorted((row["writer"], row["number"]) for row in rows)
    assert found == [(writer, number) for writer in range(WRITERS) for number in landed[writer]]
    assert table.version() == len(found) > 0
    assert all(status == 404 for status, _ in proxy.answers)
