"""The WebHDFS store against a fake HDFS: the contract, and each fault at each step of a write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from delta_core.clock import ManualClock
from delta_core.conformance.log_store_contract import LogStoreContract
from delta_core.errors import (
    AmbiguousWriteError,
    NameBlockedError,
    NotWrittenError,
    ObjectExistsError,
    ObjectNotFoundError,
    PathEscapeError,
    StorageError,
    StorePermissionError,
    UnsafeStoreError,
    WriteRefusedError,
)
from delta_core.storage.ranged_input import READ_AHEAD_BYTES
from delta_core.storage.webhdfs import WebHdfsLogStore
from tests.support.webhdfs_server import FakeHdfs, FakeNode

COMMIT = "_delta_log/00000000000000000001.json"


@pytest.fixture
def hdfs() -> FakeHdfs:
    return FakeHdfs()


@pytest.fixture
def node(hdfs: FakeHdfs) -> Iterator[FakeNode]:
    with FakeNode(hdfs) as node:
        yield node


def _store(*nodes: FakeNode, **options: str) -> WebHdfsLogStore:
    options.setdefault("webhdfs_endpoint", ",".join(node.url for node in nodes))
    return WebHdfsLogStore("hdfs://nn/t", options={"user": "ann", **options}, clock=ManualClock())


@pytest.fixture
def store(node: FakeNode) -> WebHdfsLogStore:
    return _store(node)


class TestWebHdfsLogStore(LogStoreContract):
    """The store keeps the contract."""

    @pytest.fixture
    def store(self, node: FakeNode) -> WebHdfsLogStore:
        return _store(node)


# ---------------------------------------------------------------- what is asked


def test_requests_of_a_write_and_a_read(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    store.put_if_absent(COMMIT, b"x")
    assert [operation for operation, _ in hdfs.requests] == ["CREATE", "data:CREATE", "RENAME"]
    assert hdfs.queries[-1]["renameoptions"] == "NONE"
    hdfs.requests.clear()
    store.read(COMMIT)
    assert hdfs.requests == [("OPEN", f"/t/{COMMIT}"), ("data:OPEN", f"/t/{COMMIT}")]
    assert {query["user.name"] for query in hdfs.queries} == {"ann"}


def test_an_answer_that_does_not_mark_its_end_is_compared_with_the_length(
    store: WebHdfsLogStore, hdfs: FakeHdfs
) -> None:
    hdfs.store(f"/t/{COMMIT}", b"one\ntwo\n")
    hdfs.faults = [("data:OPEN", "unframed")]
    assert store.read(COMMIT) == b"one\ntwo\n"
    asked = ["OPEN", "data:OPEN", "GETFILESTATUS"]
    assert [operation for operation, _ in hdfs.requests] == asked
    hdfs.faults = [("data:OPEN", "cut")]
    assert store.read(COMMIT) == b"one\ntwo\n", "a part was not taken, and the next try was"
    hdfs.faults = [("data:OPEN", "cut")] * 3
    with pytest.raises(StorageError, match="4 bytes arrived instead of 8"):
        store.read(COMMIT)


@pytest.mark.parametrize("name", ["a b", "100%", "a%20b", "x+y;z=1&w?#", "ü€😀", "[a]{b}|^`\\\"'<>"])
def test_names_arrive_as_they_are(store: WebHdfsLogStore, hdfs: FakeHdfs, name: str) -> None:
    store.put_if_absent(f"d {name}/{name}", b"1")
    assert list(hdfs.files) == [f"/t/d {name}/{name}"]
    assert store.read(f"d {name}/{name}") == b"1"
    assert [info.path for info in store.walk()] == [f"d {name}/{name}"]


def test_a_name_that_is_no_text_is_refused(store: WebHdfsLogStore) -> None:
    with pytest.raises(PathEscapeError, match="a lone surrogate"):
        store.read("a\udc80")


def test_big_directories_are_listed_in_pages_from_where_it_matters(
    store: WebHdfsLogStore, hdfs: FakeHdfs
) -> None:
    hdfs.page_entries = 3
    for number in range(10):
        hdfs.store(f"/t/l/{number}", b"")
    hdfs.store("/t/l/.tmp-1", b"")
    assert [info.path for info in store.list_directory("l")] == [f"l/{number}" for number in range(10)]
    hdfs.requests.clear()
    assert [info.path for info in store.list_directory("l", start_after="6")] == ["l/7", "l/8", "l/9"]
    assert len(hdfs.requests) == 1


def test_a_server_without_pages_lists_at_once(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.knows_pages = False
    for number in range(4):
        hdfs.store(f"/t/l/{number}", b"")
    assert [info.path for info in store.list_directory("l", start_after="1")] == ["l/2", "l/3"]
    assert [info.path for info in store.list_directory("l")] == ["l/0", "l/1", "l/2", "l/3"]
    operations = [operation for operation, _ in hdfs.requests]
    assert operations == ["LISTSTATUS_BATCH", "LISTSTATUS", "LISTSTATUS"]


def test_a_file_is_no_directory(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.store("/t/f", b"1")
    assert store.list_directory("f") == []
    assert list(store.walk("f")) == []
    assert store.list_directory("f/below") == []
    store.delete("f/below")
    for ask in (store.read, store.head, store.open_input):
        with pytest.raises(ObjectNotFoundError):
            ask("f/below/x")
    with pytest.raises(NameBlockedError):
        store.put_if_absent("f/below", b"")
    assert list(hdfs.files) == ["/t/f"]


def test_ranges_are_read_ahead_and_the_end_at_once(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    data = os.urandom(3 * READ_AHEAD_BYTES)
    hdfs.store("/t/f", data)
    with store.open_input("f") as source:
        assert source.size() == len(data)
        source.seek(len(data) - 8)
        assert source.read(8) == data[-8:]
        source.seek(len(data) - 1000)
        assert source.read(500) == data[-1000:-500]
        source.seek(0)
        assert b"".join(iter(lambda: source.read(1000), b"")) == data
    fetched = [query for query in hdfs.queries if "length" in query]
    assert len({query["offset"] for query in fetched}) <= 5


def test_a_file_that_shrinks_while_it_is_read(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.store("/t/f", b"0123456789")
    with store.open_input("f") as source:
        hdfs.files["/t/f"] = b"01"
        with pytest.raises(StorageError, match="2 bytes of 'f' arrived instead of 10"):
            source.read()


# ---------------------------------------------------------------- reads that fail


@pytest.mark.parametrize("fault", ["lost", "500", "RetriableException", "StandbyException"])
@pytest.mark.parametrize("operation", ["OPEN", "data:OPEN"])
def test_reads_are_tried_again(store: WebHdfsLogStore, hdfs: FakeHdfs, operation: str, fault: str) -> None:
    hdfs.store("/t/f", b"1")
    hdfs.faults = [(operation, fault)] * 2
    assert store.read("f") == b"1"
    hdfs.faults = [(operation, fault)] * 3
    with pytest.raises(StorageError) as caught:
        store.read("f")
    assert caught.value.retryable
    assert store.clock.monotonic_seconds() > 1


def test_refused_reads_are_not_tried_again(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.store("/t/f", b"1")
    for fault in ("AccessControlException", "401", "403"):
        hdfs.faults = [("OPEN", fault)]
        with pytest.raises(StorePermissionError):
            store.read("f")
    assert store.clock.monotonic_seconds() == 0


def test_a_404_that_is_not_of_webhdfs_does_not_mean_missing(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    calls = {"OPEN": lambda: store.read("f"), "LISTSTATUS_BATCH": lambda: store.list_directory("d")}
    for operation, call in calls.items():
        hdfs.faults = [(operation, "404")]
        with pytest.raises(StorageError, match="HTTP 404: the response is not one of WebHDFS") as caught:
            call()
        assert not isinstance(caught.value, ObjectNotFoundError)


def test_a_success_that_is_not_of_webhdfs_is_none(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.store("/t/f", b"1")
    calls: dict[str, Callable[[], object]] = {
        "OPEN": lambda: store.read("f"),
        "data:OPEN": lambda: store.read("f"),
        "GETFILESTATUS": lambda: store.head("f"),
        "LISTSTATUS_BATCH": lambda: store.list_directory(""),
        "DELETE": lambda: store.delete("f"),
        "CREATE": lambda: store.put_if_absent("g", b"1"),
        "data:CREATE": lambda: store.put_if_absent("g", b"1"),
        "RENAME": lambda: store.put_if_absent("g", b"1"),
    }
    for operation, call in calls.items():
        hdfs.faults = [(operation, "200")]
        with pytest.raises(StorageError):
            call()
    assert hdfs.files == {"/t/f": b"1"}


@pytest.mark.parametrize(
    "document",
    [
        {"FileStatuses": {"FileStatus": None}},
        {"FileStatuses": {"FileStatus": [{"pathSuffix": "a"}]}},
        {"FileStatuses": []},
        [],
    ],
)
def test_a_listing_that_is_none(
    store: WebHdfsLogStore, hdfs: FakeHdfs, monkeypatch: pytest.MonkeyPatch, document: object
) -> None:
    hdfs.knows_pages = False
    monkeypatch.setattr(hdfs, "_liststatus", lambda path, query: document, raising=True)
    with pytest.raises(StorageError, match="Could not list"):
        store.list_directory("")


def test_a_path_too_long_for_a_url(store: WebHdfsLogStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.read("a" * 70_000)
    with pytest.raises(WriteRefusedError):
        store.put_if_absent("a" * 70_000, b"")


def test_no_server_at_all() -> None:
    with FakeNode(FakeHdfs()) as node:
        pass
    with pytest.raises(StorageError, match=r"ConnectError at 127\.0\.0\.1"):
        _store(node).read("x")
    with pytest.raises(StorageError) as caught:
        _store(node).put_if_absent("x", b"")
    assert not isinstance(caught.value, AmbiguousWriteError)


# ---------------------------------------------------------------- writes that fail


@pytest.mark.parametrize("operation", ["CREATE", "data:CREATE"])
@pytest.mark.parametrize("fault", ["lost", "landed", "500", "IOException", "AccessControlException"])
def test_a_failure_before_the_rename_creates_nothing(
    store: WebHdfsLogStore, hdfs: FakeHdfs, operation: str, fault: str
) -> None:
    hdfs.faults = [(operation, fault)]
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(COMMIT, b"x")
    assert not isinstance(caught.value, AmbiguousWriteError)
    assert isinstance(caught.value, StorePermissionError) == (fault == "AccessControlException")
    assert hdfs.files == {}
    assert [asked for asked, _ in hdfs.requests].count(operation) == 1


@pytest.mark.parametrize("fault", ["lost", "late", "500", "503", "IOException", "RetriableException"])
def test_a_rename_that_never_took_place_is_told_for_certain(
    store: WebHdfsLogStore, hdfs: FakeHdfs, fault: str
) -> None:
    hdfs.faults = [("RENAME", fault)]
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(COMMIT, b"x")
    assert type(caught.value) is NotWrittenError
    assert caught.value.retryable
    assert hdfs.files == {}, "a request that arrives late finds no temporary file"
    assert [asked for asked, _ in hdfs.requests].count("RENAME") == 1
    store.put_if_absent(COMMIT, b"x")
    assert store.read(COMMIT) == b"x"


def test_a_rename_whose_answer_is_lost_is_ambiguous(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.faults = [("RENAME", "landed")]
    with pytest.raises(AmbiguousWriteError):
        store.put_if_absent(COMMIT, b"x")
    assert hdfs.files == {f"/t/{COMMIT}": b"x"}
    with pytest.raises(ObjectExistsError):
        store.put_if_absent(COMMIT, b"x")


@pytest.mark.parametrize("fault", ["lost", "landed", "late", "500"])
def test_a_rename_that_cannot_be_looked_into_is_ambiguous(
    store: WebHdfsLogStore, hdfs: FakeHdfs, fault: str
) -> None:
    hdfs.faults = [("RENAME", fault), ("DELETE", "lost"), ("DELETE", "500")]
    with pytest.raises(AmbiguousWriteError):
        store.put_if_absent(COMMIT, b"x")
    assert len(hdfs.files) == 1


def test_a_rename_that_a_proxy_sends_twice_is_ambiguous(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.faults = [("RENAME", "doubled")]
    with pytest.raises(AmbiguousWriteError):
        store.put_if_absent(COMMIT, b"x")
    assert hdfs.files == {f"/t/{COMMIT}": b"x"}


def test_a_deletion_that_lands_unheard_leaves_it_ambiguous(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.faults = [("RENAME", "lost"), ("DELETE", "landed")]
    with pytest.raises(AmbiguousWriteError):
        store.put_if_absent(COMMIT, b"x")
    assert hdfs.files == {}


@pytest.mark.parametrize("fault", ["AccessControlException", "SecurityException", "401", "403"])
def test_a_refused_rename_creates_nothing(store: WebHdfsLogStore, hdfs: FakeHdfs, fault: str) -> None:
    hdfs.faults = [("RENAME", fault)]
    with pytest.raises(StorePermissionError):
        store.put_if_absent(COMMIT, b"x")
    assert hdfs.files == {}


@pytest.mark.parametrize("operation", ["CREATE", "data:CREATE", "RENAME"])
def test_a_limit_of_hdfs_is_no_reason_to_try_again(
    store: WebHdfsLogStore, hdfs: FakeHdfs, operation: str
) -> None:
    hdfs.faults = [(operation, "NSQuotaExceededException")]
    with pytest.raises(WriteRefusedError, match="quota"):
        store.put_if_absent(COMMIT, b"x")
    assert hdfs.files == {}


def test_a_taken_name_leaves_no_temporary_file(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    store.put_if_absent(COMMIT, b"x")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent(COMMIT, b"y")
    assert hdfs.files == {f"/t/{COMMIT}": b"x"}


def test_a_directory_under_the_name(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.store(f"/t/{COMMIT}/inside", b"")
    for write in (store.put_if_absent, store.put):
        with pytest.raises(NameBlockedError):
            write(COMMIT, b"x")
    assert hdfs.temporary_files() == []
    with pytest.raises(StorageError):
        store.delete(COMMIT)


@pytest.mark.parametrize("fault", ["lost", "500", "AccessControlException"])
def test_a_failed_replacement_leaves_the_old(store: WebHdfsLogStore, hdfs: FakeHdfs, fault: str) -> None:
    store.put("f", b"old")
    hdfs.faults = [("RENAME", fault)]
    with pytest.raises(StorageError, match=r"Could not write|No permission"):
        store.put("f", b"new")
    assert hdfs.files == {"/t/f": b"old"}


def test_a_replacement_whose_answer_is_lost(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.faults = [("RENAME", "landed")]
    with pytest.raises(StorageError, match="It is not known whether") as caught:
        store.put("f", b"new")
    assert caught.value.retryable
    assert store.read("f") == b"new"


def _write_output(store: WebHdfsLogStore, data: bytes) -> None:
    with store.open_output("part.bin") as sink:
        sink.write(data)


@pytest.mark.parametrize(
    "fault",
    [
        ("CREATE", "500"),
        ("data:CREATE", "lost"),
        ("data:CREATE", "landed"),
        ("RENAME", "lost"),
        ("RENAME", "late"),
    ],
)
def test_an_output_is_tried_again_and_leaves_nothing_when_it_fails(
    store: WebHdfsLogStore, hdfs: FakeHdfs, fault: tuple[str, str]
) -> None:
    data = os.urandom(3_000_000)
    hdfs.faults = [fault] * 3
    with pytest.raises(StorageError):
        _write_output(store, data)
    assert hdfs.files == {}
    hdfs.faults = [fault] * 2
    _write_output(store, data)
    assert hdfs.files == {"/t/part.bin": data}


def test_an_output_whose_answer_is_lost_is_written_once_more(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.faults = [("RENAME", "landed")]
    _write_output(store, b"x")
    assert hdfs.files == {"/t/part.bin": b"x"}
    assert [asked for asked, _ in hdfs.requests].count("RENAME") == 2


def test_a_refused_output_is_not_tried_again(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.faults = [("data:CREATE", "DSQuotaExceededException")]
    with pytest.raises(WriteRefusedError):
        _write_output(store, b"x")
    assert hdfs.files == {}


def test_a_full_local_disk_is_named(
    store: WebHdfsLogStore, hdfs: FakeHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(path: str, mode: str) -> pa.NativeFile:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pa, "OSFile", no_space)
        with pytest.raises(StorageError, match=r"No space left on device.*TMPDIR"):
            _write_output(store, b"")
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    with pytest.raises(StorageError, match="TMPDIR"):
        _write_output(store, b"")
    assert hdfs.requests == []


def test_a_server_that_renames_without_options_is_unsafe(store: WebHdfsLogStore, hdfs: FakeHdfs) -> None:
    hdfs.knows_rename_options = False
    with pytest.raises(AmbiguousWriteError):
        store.put_if_absent(COMMIT, b"x")
    with pytest.raises(UnsafeStoreError, match="HttpFS"):
        store.put_if_absent(COMMIT, b"y")
    with pytest.raises(UnsafeStoreError):
        store.put(COMMIT, b"y")
    assert hdfs.files == {f"/t/{COMMIT}": b"x"}
