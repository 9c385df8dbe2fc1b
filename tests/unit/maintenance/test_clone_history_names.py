"""A history whose log names files by absolute paths: the clone's names its own, in every file of the log."""

from __future__ import annotations

import json
import posixpath
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.actions import AddCdcFile
from delta_core.checkpoint.log_compaction import compact_log
from delta_core.checkpoint.version_checksum import write_version_checksum
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import CorruptLogError, PathEscapeError
from delta_core.maintenance.clone.history import staged_log
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.file_actions import add_actions
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove

pytestmark = pytest.mark.slow

FEATURES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


LATER_MS = 4_000_000_000_000


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": numbers, "p": ["x" if n % 2 else "y" for n in numbers]}, schema=SCHEMA)


def shallow(tmp_path: Path, **configuration: str) -> tuple[Path, Path]:
    """A table, and a shallow clone of it that went on: files and vectors of the one, files of the other."""
    origin, source = tmp_path / "origin", tmp_path / "source"
    DeltaTable.create(origin, SCHEMA, partition_by=["p"], configuration={**FEATURES, **configuration})
    write_deltalake(origin, rows(*range(10)), mode="append")
    write_deltalake(origin, rows(*range(10, 20)), mode="append")
    DeltaTable(origin).delete("id = 3")
    clone_table(origin, source, shallow=True)
    write_deltalake(source, rows(30, 31), mode="append")
    return origin, source


def ids(path: Path, version: int, *roots: Path) -> list[int]:
    table = DeltaTable(path, version=version, allowed_roots=roots)
    return sorted(table.to_pyarrow_table(["id"])["id"].to_pylist())


def by_duckdb(path: Path, version: int) -> list[int]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        found = connection.execute("SELECT id FROM delta_scan(?, version=>?)", [str(path), version])
        return sorted(row[0] for row in found.fetchall())


def without(source: Path, origin: Path, target: Path, **options: Any) -> None:
    """Clone with history, then take the others away."""
    clone_table(source, target, keep_history=True, allowed_roots=[origin], **options)
    for path in (source, origin):
        path.rename(path.with_name(path.name + "-moved"))


def logged(path: Path) -> str:
    """All texts of a log, Parquet files among them."""
    strings = []
    for file in (path / "_delta_log").rglob("*"):
        if file.suffix == ".parquet":
            strings.append(str(pq.read_table(file).to_pylist()))
        elif file.is_file():
            strings.append(file.read_text())
    return "\n".join(strings)


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_a_shallow_clone_with_its_history_stands_alone(
    tmp_path: Path, policy: str, from_checkpoint: bool
) -> None:
    origin, source = shallow(tmp_path, **{"delta.checkpointPolicy": policy})
    target = tmp_path / "target"
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    write_deltalake(source, rows(40), mode="append")
    DeltaTable(source, allowed_roots=[origin]).delete("id = 5 or id = 13")
    compact_log(Snapshot.load(LocalLogStore(source)), first=2, last=3)
    write_version_checksum(Snapshot.load(LocalLogStore(source)))
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    first = 1 if from_checkpoint else 0
    if from_checkpoint:
        (source / "_delta_log" / f"{0:020}.json").unlink()
    expected = {version: ids(source, version, origin) for version in range(first, 4)}
    files = {file.relative_to(source) for file in (source / "_delta_log").rglob("*") if file.is_file()}
    without(source, origin, target, compare_bytes=True)
    assert {
        file.relative_to(target) for file in (target / "_delta_log").rglob("*") if file.is_file()
    } == files
    assert f"{origin}/" not in logged(target)
    for version, numbers in expected.items():
        assert ids(target, version) == by_duckdb(target, version) == numbers
    snapshot = Snapshot.load(LocalLogStore(target))
    assert snapshot.checksum_discrepancies == ()
    assert snapshot.segment.checkpoint_version == 3
    assert all(
        not file.path.startswith("file:") for file in add_actions(snapshot.files.to_table(), data_change=True)
    )
    # What others write behind it stays correct: the names of removed files are those of their adds.
    DeltaTable(target).delete("id = 30 or id = 4")
    assert ids(target, 4) == [n for n in expected[3] if n not in (4, 30)]


def test_a_clone_of_absolute_paths_goes_on(tmp_path: Path) -> None:
    origin, source = shallow(tmp_path)
    target = tmp_path / "target"
    clone_table(source, target, keep_history=True, allowed_roots=[origin], version=0)
    assert ids(target, 0) == ids(source, 0, origin)
    result = clone_table(source, target, keep_history=True, allowed_roots=[origin])
    assert result.version == 1
    assert ids(target, 1) == ids(source, 1, origin)
    assert clone_table(source, target, keep_history=True, allowed_roots=[origin]).version is None


def test_a_first_checkpoint_that_cannot_be_translated_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin, source = shallow(tmp_path)
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    (source / "_delta_log" / f"{0:020}.json").unlink()

    def cut_short(*_: object, **__: object) -> None:
        raise pa.ArrowInvalid("the footer is cut short")

    monkeypatch.setattr(staged_log, "translate_part", cut_short)
    with pytest.raises(CorruptLogError, match="the footer is cut short"):
        clone_table(source, tmp_path / "target", keep_history=True, allowed_roots=[origin])
    assert not DeltaTable.is_deltatable(tmp_path / "target")


def test_a_root_that_is_not_allowed_stops_it(tmp_path: Path) -> None:
    _, source = shallow(tmp_path)
    with pytest.raises(PathEscapeError):
        clone_table(source, tmp_path / "target", keep_history=True)
    assert not (tmp_path / "target").exists()


def test_absolute_paths_below_the_own_root_become_relative(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "t")
    root = log.root
    for name in ("a 1.parquet", "b.parquet", "changes.parquet"):
        root.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": [1]}), root / name)
    size = (root / "b.parquet").stat().st_size
    log.commit(protocol(), metadata(partition_columns=()))
    absolute = f"file://{root}/a%201.parquet"
    plain = {"partition_values": {}, "size_bytes": size}
    log.commit(add(absolute, **plain), add("b.parquet", **plain))
    cdc = AddCdcFile(path=f"{root}/changes.parquet", partition_values={}, size_bytes=size)
    log.commit(remove(absolute, size_bytes=None, deletion_timestamp_ms=LATER_MS), cdc)
    write_checkpoint(Snapshot.load(log.store))
    clone_table(root, tmp_path / "c", keep_history=True)
    lines = [
        json.loads(line)
        for version in (1, 2)
        for line in (tmp_path / "c" / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    ]
    paths = [next(iter(line.values())).get("path") for line in lines]
    assert paths == ["a%201.parquet", "b.parquet", "a%201.parquet", "changes.parquet"]
    root.rename(tmp_path / "moved")
    assert ids(tmp_path / "c", 1) == [1, 1]
    assert ids(tmp_path / "c", 2) == [1]
    snapshot = Snapshot.load(LocalLogStore(tmp_path / "c"))
    assert snapshot.tombstones(since_ms=0)["path"].to_pylist() == ["a%201.parquet"]


def test_change_data_of_another_table_stays_change_data(tmp_path: Path) -> None:
    other = tmp_path / "other" / "_change_data"
    other.mkdir(parents=True)
    changes = pa.table({"id": [1], "_change_type": ["delete"]})
    pq.write_table(changes, other / "c.parquet")
    log = LogBuilder(tmp_path / "t")
    log.commit(
        protocol(min_writer_version=4),
        metadata(partition_columns=(), configuration={"delta.enableChangeDataFeed": "true"}),
    )
    size = (other / "c.parquet").stat().st_size
    log.commit(AddCdcFile(path=f"file://{other}/c.parquet", partition_values={}, size_bytes=size))
    clone_table(log.root, tmp_path / "c", keep_history=True, allowed_roots=[tmp_path / "other"])
    (path,) = (tmp_path / "c" / "_change_data").iterdir()
    assert posixpath.splitext(path.name)[1] == ".parquet"
    found = DeltaTable(tmp_path / "c").load_cdf(starting_version=1).read_all()
    assert found["_change_type"].to_pylist() == ["delete"]
