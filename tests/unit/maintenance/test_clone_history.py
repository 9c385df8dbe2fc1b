"""Clones that keep the source's history: each version, its time and its changes, for us and for others."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import VersionNotFoundError
from delta_core.maintenance.clone import CloneResult, KeptHistory
from delta_core.maintenance.clone.history import clone_history, copies, publish
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.counting_store import CountingStore

pytestmark = pytest.mark.slow

MakeTable = Callable[..., Path]

FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
}


def history_of(source: Path, target: Path, **options: Any) -> CloneResult:
    return clone_table(source, target, keep_history=True, **options)


def kept(result: CloneResult) -> KeptHistory:
    assert result.history is not None
    return result.history


def log_of(path: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a log but the hint, with its time in milliseconds; sidecars have times of their own."""
    log = path / "_delta_log"
    return {
        str(file.relative_to(log)): (
            file.read_bytes(),
            0 if "_sidecars" in file.parts else file.stat().st_mtime_ns // 1_000_000,
        )
        for file in log.rglob("*")
        if file.is_file() and file.name != "_last_checkpoint"
    }


def data_of(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.relative_to(path).parts[0] not in ("_delta_log", "_deltaward")
    }


def ids(path: Path, version: int | None = None, **options: Any) -> list[int]:
    return sorted(DeltaTable(path, version=version, **options).to_pyarrow_table(["id"])["id"].to_pylist())


def by_deltalake(path: Path, version: int) -> list[int]:
    table = PeerTable(str(path), version=version)
    found = QueryBuilder().register("t", table).execute("SELECT id FROM t")
    return sorted(pa.table(found.read_all())["id"].to_pylist())


def by_duckdb(path: Path, version: int) -> list[int]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        rows = connection.execute("SELECT id FROM delta_scan(?, version=>?)", [str(path), version])
        return sorted(row[0] for row in rows.fetchall())


def changes(path: Path) -> list[tuple[Any, ...]]:
    found = DeltaTable(path).load_cdf(starting_version=1).read_all()
    names = ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    return sorted(tuple(row.values()) for row in found.select(names).to_pylist())


def featured(path: Path) -> Path:
    """Vectors, change data, row ids, a removed file, two checkpoints, an overwrite."""
    schema = pa.schema([("id", pa.int64()), ("part", pa.string())])
    table = DeltaTable.create(path, schema, partition_by=["part"], configuration=FEATURES)
    for start in (0, 10, 20):
        rows = {"id": range(start, start + 10), "part": ["a b" if n % 2 else "c" for n in range(10)]}
        write_deltalake(path, pa.table(rows, schema=schema), mode="append")
    write_checkpoint(Snapshot.load(LocalLogStore(path)))
    DeltaTable(path).delete("id = 3 or id = 14")
    DeltaTable(path).update({"id": "id + 100"}, predicate="id = 20")
    DeltaTable(path).optimize.compact()
    write_checkpoint(Snapshot.load(LocalLogStore(path)))
    write_deltalake(path, pa.table({"id": [7], "part": ["c"]}, schema=schema), mode="overwrite")
    del table
    return path


def test_every_version_is_there_for_every_reader(tmp_path: Path) -> None:
    source, target = featured(tmp_path / "t"), tmp_path / "c"
    newest = DeltaTable(source).version()
    result = history_of(source, target)
    assert result.committed is None
    assert result.version == newest
    assert kept(result) == KeptHistory(
        first_version=0, last_version=newest, versions_copied=newest + 1, files_gone=0, keeps_times=True
    )
    assert log_of(target) == log_of(source)
    assert data_of(target) == data_of(source)
    assert result.files_copied == len(data_of(source))
    assert result.bytes_copied == sum(map(len, data_of(source).values()))
    expected = {version: ids(source, version) for version in range(newest + 1)}
    changed = changes(source)
    source.rename(tmp_path / "elsewhere")
    for version, rows in expected.items():
        assert ids(target, version) == rows
        assert by_duckdb(target, version) == rows
    assert changes(target) == changed


def test_deltalake_reads_each_version_and_writes_go_on(make_table: MakeTable, tmp_path: Path) -> None:
    source, target = make_table(commits=3), tmp_path / "c"
    PeerTable(str(source)).delete("id < 5")
    history_of(source, target)
    for version in range(4):
        assert by_deltalake(target, version) == ids(source, version)
    assert [entry.timestamp_ms for entry in DeltaTable(target).history()] == [
        entry.timestamp_ms for entry in DeltaTable(source).history()
    ]
    assert PeerTable(str(target)).metadata().id == PeerTable(str(source)).metadata().id
    before = ids(source)
    PeerTable(str(target)).delete("id >= 20")
    write_deltalake(target, PeerTable(str(source)).to_pyarrow_table().slice(0, 1), mode="append")
    assert ids(source) == before
    assert DeltaTable(target).version() == 5


def test_a_time_means_the_version_that_it_means_in_the_source(make_table: MakeTable, tmp_path: Path) -> None:
    source, target = make_table(commits=3), tmp_path / "c"
    for version in range(3):
        moment = 1_700_000_000 + version * 3600
        os.utime(source / "_delta_log" / f"{version:020}.json", (moment, moment))
    history_of(source, target)
    for version in range(3):
        at_ms = (1_700_000_000 + version * 3600) * 1000
        assert Snapshot.load(LocalLogStore(target), timestamp_ms=at_ms).version == version
        peer = PeerTable(str(target))
        peer.load_as_version(dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC))
        assert peer.version() == version


def test_a_store_without_times_says_so(
    make_table: MakeTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = make_table(commits=2), tmp_path / "c"
    monkeypatch.setattr(publish, "set_modified_time", lambda *args: False)
    result = history_of(source, target)
    assert not kept(result).keeps_times
    assert ids(target, 0) == ids(source, 0)


def test_times_in_commits_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "t", tmp_path / "c"
    schema = pa.schema([("id", pa.int64())])
    DeltaTable.create(source, schema, configuration={"delta.enableInCommitTimestamps": "true"})
    write_deltalake(source, pa.table({"id": [1]}), mode="append")
    monkeypatch.setattr(publish, "set_modified_time", lambda *args: False)
    history_of(source, target)
    times = [entry.timestamp_ms for entry in DeltaTable(source).history()]
    assert [entry.timestamp_ms for entry in DeltaTable(target).history()] == times
    assert Snapshot.load(LocalLogStore(target), timestamp_ms=times[1]).version == 0


def test_later_versions_follow_and_nothing_else_is_copied(make_table: MakeTable, tmp_path: Path) -> None:
    source, target = make_table(commits=2), tmp_path / "c"
    history_of(source, target)
    assert history_of(source, target).version is None
    PeerTable(str(source)).delete("id = 3")
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    result = history_of(source, target)
    assert result.files_copied == 1
    assert kept(result).versions_copied == 1
    assert kept(result).first_version == 2
    assert log_of(target) == log_of(source)
    assert data_of(target) == data_of(source)
    older = history_of(source, target, version=1)
    assert older.version is None
    assert kept(older).last_version == 2


def cleaned(source: Path) -> int:
    """Let the log start at a checkpoint: the version that it starts with."""
    for version in range(3):
        file = source / "_delta_log" / f"{version:020}.json"
        file.unlink()
    return 3


def test_a_log_that_starts_at_a_checkpoint(tmp_path: Path) -> None:
    source, target = featured(tmp_path / "t"), tmp_path / "c"
    first = cleaned(source)
    newest = DeltaTable(source).version()
    result = history_of(source, target)
    assert kept(result).first_version == first
    assert log_of(target) == log_of(source)
    for version in range(first, newest + 1):
        assert ids(target, version) == by_duckdb(target, version) == ids(source, version)
    with pytest.raises(VersionNotFoundError):
        DeltaTable(target, version=first - 1)
    write_deltalake(source, pa.table({"id": [8], "part": ["c"]}), mode="append")
    assert kept(history_of(source, target)).versions_copied == 1


def test_a_named_version_begins_at_the_checkpoint_before_it(tmp_path: Path) -> None:
    source, target = featured(tmp_path / "t"), tmp_path / "c"
    result = history_of(source, target, history_from=4, version=5)
    assert (kept(result).first_version, kept(result).last_version) == (3, 5)
    assert [ids(target, version) for version in (3, 4, 5)] == [ids(source, v) for v in (3, 4, 5)]
    assert DeltaTable(target).version() == 5
    assert len(data_of(target)) < len(data_of(source))
    assert cleanup_expired_logs(Snapshot.load(LocalLogStore(target))) is not None


def test_files_that_a_vacuum_took_before_are_counted(make_table: MakeTable, tmp_path: Path) -> None:
    source, target = make_table(commits=2), tmp_path / "c"
    PeerTable(str(source)).delete("id < 10")
    PeerTable(str(source)).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    result = history_of(source, target, compare_bytes=True)
    assert kept(result).files_gone == 1
    assert ids(target) == ids(source)


@pytest.mark.parametrize("few", [0, 1000])
def test_requests_go_side_by_side(
    make_table: MakeTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    source, target = CountingStore(make_table(commits=9)), CountingStore(tmp_path / "c")
    monkeypatch.setattr(copies, "_FEW", few)
    snapshot = Snapshot.load(source)
    source.reset()
    source.latency.first_byte = 0.05
    result = clone_history(snapshot, target)
    assert (result.files_copied, kept(result).versions_copied) == (9, 9)
    assert sum(path.endswith(".json") for path in source.requests.gets) == 19  # with one to begin with
    assert source.requests.most_at_once > 1
    assert log_of(tmp_path / "c") == log_of(tmp_path / "t")
    assert clone_history(snapshot, target).files_copied == 0


@pytest.mark.parametrize("policy", ["v2", "classic"])
def test_sidecars_come_along(tmp_path: Path, policy: str) -> None:
    source, target = tmp_path / "t", tmp_path / "c"
    schema = pa.schema([("id", pa.int64())])
    DeltaTable.create(source, schema, configuration={"delta.checkpointPolicy": "v2"})
    for number in range(3):
        write_deltalake(source, pa.table({"id": [number]}), mode="append")
    if policy == "v2":
        write_checkpoint(Snapshot.load(LocalLogStore(source)))
        assert list((source / "_delta_log" / "_sidecars").iterdir())
    history_of(source, target)
    assert log_of(target) == log_of(source)
    assert ids(target) == [0, 1, 2]
    assert by_duckdb(target, 3) == [0, 1, 2]
