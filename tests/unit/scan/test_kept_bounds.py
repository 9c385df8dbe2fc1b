"""Bounds that one process has parsed are another's, where log objects are kept on the disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.checkpoint.classic import write_checkpoint
from delta_core.log import checkpoint_part
from delta_core.scan import data_skipping
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import CachedLogStore
from delta_core.storage.derived_columns import DerivedColumns
from delta_core.storage.disk_cache import DiskCache
from delta_core.storage.log_store import LogStore
from tests.support.counting_store import CountingStore
from tests.support.log_builder import LogBuilder, add


def stats(low: int, high: int) -> str:
    bounds = {"minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
    return json.dumps({"numRecords": 1, **bounds})


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogBuilder:
    monkeypatch.setattr(data_skipping, "_WORTH_THREADS", 0)
    made = LogBuilder(tmp_path / "table").create()
    made.commit(*(add(f"part-{n}", stats=stats(10 * n, 10 * n + 9)) for n in range(20)))
    write_checkpoint(Snapshot.load(made.store, clock=made.clock))
    return made


def selected(store: LogStore, predicate: str = "id BETWEEN 25 AND 41") -> list[str]:
    found = Scan(Snapshot.load(store), predicate=predicate).files(["path"])
    return sorted(found.column("path").to_pylist())


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were parsed, each time."""
    numbers: list[int] = []
    parse = data_skipping.parse_statistics

    def counting(strings: pa.Array, leaves: Any, *, counts: bool) -> object:
        numbers.append(len(strings))
        return parse(strings, leaves, counts=counts)

    monkeypatch.setattr(data_skipping, "parse_statistics", counting)
    return numbers


def cached(log: LogBuilder, directory: Path) -> CachedLogStore:
    return CachedLogStore(CountingStore(log.root), DiskCache(directory))


def test_a_second_process_parses_nothing(log: LogBuilder, tmp_path: Path, parsed: list[int]) -> None:
    wanted = ["part-2", "part-3", "part-4"]
    assert selected(cached(log, tmp_path / "cache")) == wanted
    assert sum(parsed) == 20
    assert selected(cached(log, tmp_path / "cache")) == wanted
    assert selected(cached(log, tmp_path / "cache"), "id < 10") == ["part-0"]
    assert sum(parsed) == 20


def test_counts_are_parsed_for_who_asks_for_them(log: LogBuilder, tmp_path: Path, parsed: list[int]) -> None:
    assert selected(cached(log, tmp_path / "cache")) == ["part-2", "part-3", "part-4"]
    assert selected(cached(log, tmp_path / "cache"), "id IS NULL") == []
    assert sum(parsed) == 40
    assert selected(cached(log, tmp_path / "cache"), "id IS NULL OR id < 10") == ["part-0"]
    assert selected(cached(log, tmp_path / "cache"), "id = 15") == ["part-1"]
    assert sum(parsed) == 40


def test_a_snapshot_parses_counts_once(log: LogBuilder, parsed: list[int]) -> None:
    snapshot = Snapshot.load(log.store)

    def paths(predicate: str) -> list[str]:
        return sorted(Scan(snapshot, predicate=predicate).files(["path"]).column("path").to_pylist())

    for _ in range(2):
        assert paths("id < 10") == ["part-0"]
        assert paths("id <=> 3") == ["part-0"]
        assert paths("id IS NULL") == []
    assert sum(parsed) == 40


def test_what_commits_brought_is_not_kept(log: LogBuilder, tmp_path: Path, parsed: list[int]) -> None:
    selected(cached(log, tmp_path / "cache"))
    log.commit(add("later", stats=stats(30, 30)))
    assert selected(cached(log, tmp_path / "cache")) == ["later", "part-2", "part-3", "part-4"]
    assert parsed == [20, 1]


def test_another_checkpoint_of_the_same_name_has_bounds_of_its_own(
    log: LogBuilder, tmp_path: Path, parsed: list[int]
) -> None:
    selected(cached(log, tmp_path / "cache"))
    other = LogBuilder(tmp_path / "other").create()
    other.commit(*(add(f"part-{n}", stats=stats(1000 * n, 1000 * n + 9)) for n in range(20)))
    write_checkpoint(Snapshot.load(other.store, clock=other.clock))
    for path in log.log.iterdir():
        (other.log / path.name).replace(path)
    assert selected(cached(log, tmp_path / "cache")) == []
    assert sum(parsed) == 40


def replaced(log: LogBuilder, tmp_path: Path) -> None:
    """Another writer's checkpoint of the same version, with the files in another order; and a commit."""
    other = LogBuilder(tmp_path / "other").create()
    other.commit(*(add(f"part-{n}", stats=stats(10 * n, 10 * n + 9)) for n in reversed(range(20))))
    write_checkpoint(Snapshot.load(other.store, clock=other.clock))
    name = f"{1:020d}.checkpoint.parquet"
    old, new = (log.log / name).stat(), (other.log / name).stat()
    assert (log.log / name).read_bytes() != (other.log / name).read_bytes()
    (other.log / name).replace(log.log / name)
    os.utime(log.log / name, ns=(new.st_atime_ns, old.st_mtime_ns + 10**9))
    log.commit()


WANTED = ["part-2", "part-3", "part-4"]


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_kept_of_a_checkpoint_that_was_replaced_is_not_the_new_ones(
    log: LogBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    if not whole:
        monkeypatch.setattr(checkpoint_part, "_WHOLE_BYTES", 0)
    first = Snapshot.load(cached(log, tmp_path / "cache"))
    assert first.files.num_files == 20
    replaced(log, tmp_path)
    later = first.refresh()
    assert later.version == 2
    found = Scan(later, predicate="id BETWEEN 25 AND 41").files(["path"])
    assert sorted(found.column("path").to_pylist()) == WANTED
    assert selected(cached(log, tmp_path / "cache")) == WANTED


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_kept_of_a_new_checkpoint_is_not_that_of_the_one_it_replaced(
    log: LogBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    if not whole:
        monkeypatch.setattr(checkpoint_part, "_WHOLE_BYTES", 0)
    first = Snapshot.load(cached(log, tmp_path / "cache"))
    assert first.files.num_files == 20
    replaced(log, tmp_path)
    assert selected(cached(log, tmp_path / "cache")) == WANTED
    found = Scan(first.refresh(), predicate="id BETWEEN 25 AND 41").files(["path"])
    assert sorted(found.column("path").to_pylist()) == WANTED


def test_damaged_entries_are_parsed_again(log: LogBuilder, tmp_path: Path, parsed: list[int]) -> None:
    wanted = selected(cached(log, tmp_path / "cache"))
    for path in (tmp_path / "cache").rglob("*.object"):
        path.write_bytes(path.read_bytes()[:-60])
    assert selected(cached(log, tmp_path / "cache")) == wanted
    assert sum(parsed) == 40


def test_a_local_table_keeps_nothing(log: LogBuilder, parsed: list[int]) -> None:
    assert selected(log.store) == selected(log.store)
    assert sum(parsed) == 40


BATCH = pa.record_batch({"a": [1, 2, 3]})


@pytest.mark.parametrize(
    ("schema", "rows"),
    [(pa.schema([("a", pa.int32())]), 3), (pa.schema([("b", pa.int64())]), 3), (BATCH.schema, 2)],
)
def test_a_batch_of_another_shape_is_not_taken(tmp_path: Path, schema: pa.Schema, rows: int) -> None:
    kept = DerivedColumns(cache=DiskCache(tmp_path), key="object")
    kept.put("x", BATCH)
    assert kept.get("x", BATCH.schema, 3) == BATCH
    assert kept.get("x", schema, rows) is None
    assert kept.get("y", BATCH.schema, 3) is None


def test_what_is_no_batch_is_not_taken(tmp_path: Path) -> None:
    kept = DerivedColumns(cache=DiskCache(tmp_path), key="object")
    for data in (b"", b"nothing", b"\xff" * 100):
        kept.cache.put("object\nx", data)
        assert kept.get("x", BATCH.schema, 3) is None
