"""delta-spark reads every version of a clone with history, its changes too, and goes on with it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.checkpoint.write import write_checkpoint
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.delta_spark import by_delta_spark
from tests.support.soak import drawn

pytestmark = [pytest.mark.extra, pytest.mark.spark, pytest.mark.soak]

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string())])
FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
}


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": numbers, "part": ["a b" if n % 2 else "c" for n in numbers]}, schema=SCHEMA)


def made(path: Path, policy: str) -> Path:
    """Versions 0 to 6, of an hour each until an hour ago, with vectors, changes and two checkpoints."""
    configuration = {**FEATURES, "delta.checkpointPolicy": policy}
    DeltaTable.create(path, SCHEMA, partition_by=["part"], configuration=configuration)
    write_deltalake(path, rows(*range(10)), mode="append")
    write_deltalake(path, rows(*range(10, 20)), mode="append")
    write_checkpoint(Snapshot.load(LocalLogStore(path)))
    DeltaTable(path).delete("id = 3 or id = 14")
    DeltaTable(path).update({"id": "id + 100"}, predicate="id = 12")
    DeltaTable(path).optimize.compact()
    write_checkpoint(Snapshot.load(LocalLogStore(path)))
    write_deltalake(path, rows(30), mode="append")
    began = int(time.time()) - 7 * 3600
    for version in range(7):
        moment = began + version * 3600
        os.utime(path / "_delta_log" / f"{version:020}.json", (moment, moment))
    return path


def ids(path: Path, version: int | None = None, *roots: Path) -> list[int]:
    found = DeltaTable(path, version=version, allowed_roots=roots).to_pyarrow_table(["id"])
    return sorted(found["id"].to_pylist())


def history_by_delta_spark(path: Path, out: Path, *versions: int) -> dict[str, object]:
    by_delta_spark("history", str(path), str(out), *map(str, versions))
    return dict(json.loads(out.read_text()))


def test_a_log_that_starts_at_a_checkpoint(tmp_path: Path) -> None:
    source, target = made(tmp_path / "t", "v2"), tmp_path / "c"
    for version in range(2):
        (source / "_delta_log" / f"{version:020}.json").unlink()
    clone_table(source, target, keep_history=True, version=4)
    clone_table(source, target, keep_history=True)
    versions = [2, *drawn(range(3, 6), usual=1), 6]
    expected = {str(version): ids(source, version) for version in versions}
    changes = DeltaTable(source).load_cdf(starting_version=3).read_all()
    source.rename(tmp_path / "moved")
    found = history_by_delta_spark(target, tmp_path / "found.json", *versions)
    assert found["ids"] == expected
    assert found["by_time"] == expected
    columns = changes.select(["id", "_change_type", "_commit_version"]).to_pydict().values()
    assert found["changes"] == sorted([list(row) for row in zip(*columns, strict=True)])
    after = sorted({*expected["6"], 1000} - {7})
    assert found["after"] == after == ids(target)


def test_a_history_of_absolute_paths(tmp_path: Path) -> None:
    origin, source, target = made(tmp_path / "t", "classic"), tmp_path / "s", tmp_path / "c"
    clone_table(origin, source, shallow=True)
    DeltaTable(source, allowed_roots=[origin]).delete("id = 5 or id = 30")
    write_checkpoint(Snapshot.load(LocalLogStore(source)))
    write_deltalake(source, rows(40), mode="append")
    (source / "_delta_log" / f"{0:020}.json").unlink()
    clone_table(source, target, keep_history=True, allowed_roots=[origin])
    expected = {str(version): ids(source, version, origin) for version in (1, 2)}
    source.rename(tmp_path / "moved")
    origin.rename(tmp_path / "origin-moved")
    found = history_by_delta_spark(target, tmp_path / "found.json", 1, 2)
    assert found["ids"] == found["by_time"] == expected
    assert found["after"] == sorted({*expected["2"], 1000} - {7}) == ids(target)
