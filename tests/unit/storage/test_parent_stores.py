"""The store of the directory above a store's root: the same service, up to the root of everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from delta_core.clock import SYSTEM_CLOCK
from delta_core.storage.cached import CachedLogStore
from delta_core.storage.disk_cache import DiskCache
from delta_core.storage.dynamodb_entries import DynamoDbEntries
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore, parent_store
from delta_core.storage.object_store import Clients, ObjectLogStore
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.s3_dynamodb import S3DynamoDbLogStore
from delta_core.storage.webhdfs import WebHdfsLogStore
from tests.support.faulty_store import FaultyStore


def objects(path: str = "x/a b/t") -> ObjectLogStore:
    memory = MemoryStore()
    clients = Clients(lambda: (memory, memory), proved=True, place="memory")
    return ObjectLogStore(parse_remote_uri(f"s3://bucket/{path}"), clients)


def entries() -> DynamoDbEntries:
    return DynamoDbEntries(
        table_name="log",
        bucket="bucket",
        path="x/a b/t",
        client_arguments={},
        clock=SYSTEM_CLOCK,
        spelling="s3a",
    )


def upwards(store: LogStore) -> Iterator[LogStore]:
    above = parent_store(store)
    while above is not None:
        yield above
        above = parent_store(above)


def test_above_a_local_directory(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    store = LocalLogStore(tmp_path / "a b" / "t")
    above = list(upwards(store))
    assert [one.uri for one in above[:2]] == [f"{tmp_path.as_uri()}/a%20b", tmp_path.as_uri()]
    assert above[-1].uri == "file:///"
    above[0].put_if_absent("t/x", b"1")
    assert store.read("x") == b"1"


@pytest.mark.parametrize("kind", ["plain", "cached", "dynamodb"])
def test_above_a_prefix_of_a_bucket(tmp_path: Path, kind: str) -> None:
    plain = objects()
    store: LogStore = plain
    if kind == "cached":
        store = CachedLogStore(plain, DiskCache(tmp_path, max_bytes=1 << 20))
    elif kind == "dynamodb":
        store = S3DynamoDbLogStore(plain, entries())
    plain.put("x", b"1")
    above = list(upwards(store))
    assert [one.uri for one in above] == ["s3://bucket/x/a%20b", "s3://bucket/x", "s3://bucket"]
    assert {type(one) for one in above} == {type(store)}
    assert above[0].read("t/x") == above[2].read("x/a b/t/x") == b"1"
    assert [info.path for info in above[2].walk("x")] == ["x/a b/t/x"]


def test_the_entries_above_have_the_spelling_of_the_others() -> None:
    above = entries().above()
    assert above._path() == "s3a://bucket/x/a b"
    assert above.above().above()._path() == "s3a://bucket"


def test_above_a_directory_of_hdfs() -> None:
    store = WebHdfsLogStore("webhdfs://nn:9870/x/a b/t")
    above = list(upwards(store))
    roots = ["webhdfs://nn:9870/x/a%20b", "webhdfs://nn:9870/x", "webhdfs://nn:9870"]
    assert [one.uri for one in above] == roots
    assert [one._resolve("f") for one in above] == ["/x/a b/f", "/x/f", "/f"]  # type: ignore[attr-defined]
    assert (store.uri, store._resolve("f")) == ("webhdfs://nn:9870/x/a%20b/t", "/x/a b/t/f")


def test_a_store_need_not_have_one(tmp_path: Path) -> None:
    assert parent_store(FaultyStore(LocalLogStore(tmp_path))) is None
