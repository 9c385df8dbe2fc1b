"""The cache gives back what was put in, or nothing."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from delta_core.errors import ConfigurationError
from delta_core.storage.cached import CachedLogStore, with_shared_cache
from delta_core.storage.disk_cache import CacheStatistics, DiskCache
from delta_core.storage.local import LocalLogStore
from tests.support.counting_store import CountingStore


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", max_bytes=1000)


def _entries(cache: DiskCache) -> list[Path]:
    return sorted(path for path in cache.directory.rglob("*") if path.is_file())


def _get(cache: DiskCache, key: str) -> bytes | None:
    found = cache.get(key)
    return None if found is None else found.to_pybytes()


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 950])
def test_what_was_put_is_got(cache: DiskCache, data: bytes) -> None:
    assert _get(cache, "a") is None
    cache.put("a", data)
    assert _get(cache, "a") == data
    assert _get(DiskCache(cache.directory), "a") == data
    assert _get(cache, "b") is None
    assert cache.statistics == CacheStatistics(hits=1, misses=2, damaged=0, stored=1, evicted=0)


def test_a_damaged_entry_is_dropped(cache: DiskCache) -> None:
    cache.put("a", b"0123456789")
    (path,) = _entries(cache)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            path.write_bytes(damaged)
            assert _get(cache, "a") is None
            assert not path.exists()
    assert cache.statistics.damaged == 2 * len(whole)


def test_an_entry_under_the_name_of_another_is_damaged(cache: DiskCache) -> None:
    cache.put("a", b"of a")
    (path,) = _entries(cache)
    other = cache._path("b")
    other.parent.mkdir(exist_ok=True)
    os.rename(path, other)
    assert _get(cache, "b") is None


def test_what_was_used_longest_ago_goes_first(cache: DiskCache) -> None:
    for number in range(9):
        cache.put(str(number), bytes(50))
        os.utime(cache._path(str(number)), ns=(number, number))
    assert _get(cache, "0") is not None  # used just now
    cache.put("9", bytes(200))
    kept = [number for number in range(10) if _get(cache, str(number)) is not None]
    assert 0 in kept
    assert 9 in kept
    assert 1 not in kept
    assert sum(path.stat().st_size for path in _entries(cache)) <= 1000


def test_more_than_the_bound_is_not_kept(cache: DiskCache) -> None:
    cache.put("a", bytes(1001))
    assert _entries(cache) == []


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = DiskCache(tmp_path / "file")
    cache.put("a", b"1")
    assert cache.get("a") is None
    assert cache.statistics.stored == 0


def test_many_writers_and_evictions_leave_whole_entries(cache: DiskCache) -> None:
    others = [DiskCache(cache.directory, max_bytes=1000) for _ in range(4)]
    barrier = threading.Barrier(4)

    def work(number: int) -> int:
        barrier.wait()
        wrong = 0
        for turn in range(60):
            key = str(turn % 7)
            found = _get(others[number], key)
            wrong += found not in (None, key.encode() * 150)
            others[number].put(key, key.encode() * 150)
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 0
    assert sum(other.statistics.damaged for other in others) == 0
    assert [path for path in _entries(cache) if path.suffix != ".object"] == []


def test_only_remote_stores_are_cached(tmp_path: Path) -> None:
    local, remote = LocalLogStore(tmp_path), CountingStore(tmp_path)
    assert with_shared_cache(local) is local
    assert with_shared_cache(remote, environment={"DELTAWARD_CACHE_BYTES": "0"}) is remote
    cached = with_shared_cache(remote, environment={"DELTAWARD_CACHE": str(tmp_path / "c")})
    assert isinstance(cached, CachedLogStore)
    assert cached.cache.directory == tmp_path / "c"
    usual = with_shared_cache(remote, environment={"XDG_CACHE_HOME": str(tmp_path)})
    assert isinstance(usual, CachedLogStore)
    assert (usual.cache.directory, usual.cache.max_bytes) == (tmp_path / "deltaward", 2 << 30)
    with pytest.raises(ConfigurationError, match="not a number of bytes"):
        with_shared_cache(remote, environment={"DELTAWARD_CACHE_BYTES": "many"})


def test_what_a_killed_process_left_is_removed(cache: DiskCache) -> None:
    cache.put("a", bytes(50))
    (entry,) = _entries(cache)
    old, young = entry.with_name(".old.tmp"), entry.with_name(".young.tmp")
    for path in (old, young):
        path.write_bytes(bytes(500))
    os.utime(old, (0, 0))
    for number in range(20):
        cache.put(str(number), bytes(200))
    assert not old.exists()
    assert young.exists()


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "a" / "cache")
    cache.put("a", b"secret")
    (entry,) = _entries(cache)
    assert entry.stat().st_mode & 0o777 == 0o600
    assert entry.parent.stat().st_mode & 0o777 == 0o700
    assert cache.directory.stat().st_mode & 0o777 == 0o700
