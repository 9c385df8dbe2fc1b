"""Which node a WebHDFS store asks, what it never tells, and which redirects it does not follow."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from delta_core.clock import ManualClock
from delta_core.errors import DeltaError, NotWrittenError, StorageError
from delta_core.storage import webhdfs_client
from delta_core.storage.webhdfs import WebHdfsLogStore
from delta_core.storage.webhdfs_address import webhdfs_address
from tests.support.webhdfs_server import FakeHdfs, FakeNode


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


# ---------------------------------------------------------------- several NameNodes


def test_the_active_name_node_is_found_and_kept(hdfs: FakeHdfs, node: FakeNode) -> None:
    with FakeNode(hdfs, standby=True) as standby:
        store = _store(standby, node)
        store.put_if_absent("a", b"1")
        assert store.read("a") == b"1"
        standby.standby, node.standby = False, True
        store.put("a", b"2")
        assert store.read("a") == b"2"
        assert store.clock.monotonic_seconds() == 0


def test_writes_go_on_at_another_name_node_when_one_is_gone(hdfs: FakeHdfs, node: FakeNode) -> None:
    with FakeNode(hdfs) as gone:
        store = _store(gone, node)
    store.put_if_absent("a", b"1")
    assert hdfs.files == {"/t/a": b"1"}


def test_a_write_without_an_answer_is_not_sent_to_another(hdfs: FakeHdfs, node: FakeNode) -> None:
    with FakeNode(hdfs) as other:
        hdfs.faults = [("RENAME", "lost")]
        with pytest.raises(StorageError):
            _store(node, other).put_if_absent("a", b"1")
        assert [asked for asked, _ in hdfs.requests].count("RENAME") == 1


def test_only_standby_name_nodes(hdfs: FakeHdfs, node: FakeNode) -> None:
    node.standby = True
    with pytest.raises(StorageError, match="StandbyException") as caught:
        _store(node).put_if_absent("a", b"1")
    assert type(caught.value) is NotWrittenError


# ---------------------------------------------------------------- secrets and redirects


def test_a_delegation_token_is_sent_and_never_told(
    hdfs: FakeHdfs, node: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = _store(node, delegation_token="s3cr3t+t/k")
    store.put_if_absent("a", b"1")
    assert store.read("a") == b"1"
    assert {query["delegation"] for query in hdfs.queries} == {"s3cr3t+t/k"}
    assert not any("user.name" in query for query in hdfs.queries)
    told = [repr(store), repr(webhdfs_address("hdfs://h/t", {"delegation_token": "s3cr3t+t/k"}))]
    for fault in ("lost", "500", "IOException", "404"):
        hdfs.faults = [("OPEN", fault)] * 3
        with pytest.raises(DeltaError) as caught:
            store.read("a")
        told += [str(caught.value), repr(caught.value.__cause__)]
    told += [record.getMessage() for record in caplog.records]
    assert any("delegation=..." in text for text in told), "httpx logs URLs, or this test shows nothing"
    assert not any("s3cr3t" in text for text in told)


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://h/x", "http://ann:pw@127.0.0.1/x", "/x", "http:///x"]
)
def test_redirects_that_are_not_followed(hdfs: FakeHdfs, node: FakeNode, location: str) -> None:
    hdfs.store("/t/a", b"1")
    node.location = location
    store = _store(node)
    with pytest.raises(StorageError, match="is not followed") as caught:
        store.read("a")
    assert "pw" not in str(caught.value)
    with pytest.raises(StorageError, match="is not followed"):
        store.put_if_absent("b", b"1")
    assert list(hdfs.files) == ["/t/a"]


def test_a_redirect_does_not_leave_tls() -> None:
    import httpx

    request = httpx.Request("GET", "https://nn:9871/webhdfs/v1/a")
    answer = httpx.Response(307, headers={"Location": "http://dn:9864/webhdfs/v1/a"}, request=request)
    with pytest.raises(webhdfs_client.WebHdfsRefusedError, match="http://dn is not followed"):
        webhdfs_client._location(answer)


def test_a_forked_process_has_connections_of_its_own(
    store: WebHdfsLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", b"1")
    before = store._client._http()
    assert store._client._http() is before
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert store._client._http() is not before
