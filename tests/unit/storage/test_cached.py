"""What is cut on its way is neither given out as whole nor kept."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.errors import StorageError
from delta_core.storage.cached import CachedLogStore
from delta_core.storage.disk_cache import DiskCache
from tests.support.counting_store import CountingStore

COMMIT = "_delta_log/00000000000000000001.json"
SIDECAR = "_delta_log/_sidecars/016ae953-37a9-438e-8683-9a9a4a79a395.parquet"


class CutStore(CountingStore):
    """Gives only so many bytes of an object, so many times."""

    cuts = 0
    left_bytes = 10

    def read(self, path: str) -> bytes:
        data = super().read(path)
        if not self.cuts:
            return data
        self.cuts -= 1
        return data[: self.left_bytes]


@pytest.fixture
def store(tmp_path: Path) -> CutStore:
    return CutStore(tmp_path / "t")


@pytest.fixture
def cached(store: CutStore, tmp_path: Path) -> CachedLogStore:
    return CachedLogStore(store, DiskCache(tmp_path / "cache"))


def _whole(cached: CachedLogStore, path: str) -> bytes:
    with cached.open_whole(path) as source:
        return bytes(source.read())


def test_a_listed_object_that_is_cut_is_fetched_again(store: CutStore, cached: CachedLogStore) -> None:
    store.put(COMMIT, b"0123456789\nabc\n")
    cached.list_directory("_delta_log")
    store.cuts = 3
    with pytest.raises(StorageError, match="10 bytes arrived instead of 15"):
        cached.open_whole(COMMIT)
    assert cached.cache.statistics.stored == 0
    store.cuts = 2
    assert _whole(cached, COMMIT) == b"0123456789\nabc\n"
    assert cached.cache.statistics.stored == 1


@pytest.mark.parametrize("left_bytes", [0, 3, 4, 8, 12, 40, -1, -4])
def test_a_sidecar_that_is_cut_is_not_kept(store: CutStore, cached: CachedLogStore, left_bytes: int) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": range(100)}), sink)
    data = sink.getvalue().to_pybytes()
    store.put(SIDECAR, data)
    store.cuts, store.left_bytes = 1, left_bytes
    _whole(cached, SIDECAR)
    assert cached.cache.statistics.stored == 0
    for _ in range(2):
        assert _whole(cached, SIDECAR) == data
    assert cached.cache.statistics.stored == 1


def test_a_cut_sidecar_that_was_kept_before_is_fetched_again(store: CutStore, cached: CachedLogStore) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), sink)
    data = sink.getvalue().to_pybytes()
    store.put(SIDECAR, data)
    cached.cache.put(f"{cached.uri}\n{SIDECAR}", data[:-8])
    assert _whole(cached, SIDECAR) == data
