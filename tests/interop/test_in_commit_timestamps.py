"""In-commit times that we write: peers read the tables, and delta-spark goes on and agrees on times."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core.dml.write import write_deltalake
from delta_core.table import DeltaTable
from delta_core.transaction.in_commit_time import ENABLEMENT_PROPERTIES
from tests.support.delta_spark import by_delta_spark

ENABLE = "delta.enableInCommitTimestamps"
CASES = ("from the start", "later", "again")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def written(root: Path, case: str) -> DeltaTable:
    """A table of six versions or more, with in-commit timestamps at its end."""
    write_deltalake(root, rows(0), configuration={ENABLE: "true"} if case != "later" else None)
    write_deltalake(root, rows(1), mode="append")
    table = DeltaTable(root)
    if case == "again":
        table.alter.unset_properties([ENABLE])
        write_deltalake(root, rows(2), mode="append")
    if case != "from the start":
        table.alter.set_properties({ENABLE: "true"})
    for number in (3, 4, 5):
        write_deltalake(root, rows(number), mode="append")
    return DeltaTable(root)


@pytest.mark.parametrize("case", CASES)
def test_deltalake_reads_every_version(tmp_path: Path, case: str) -> None:
    table = written(tmp_path, case)
    for version in range(table.version() + 1):
        found = PeerTable(tmp_path, version=version).to_pyarrow_table()["id"].to_pylist()
        table.load_as_version(version)
        assert sorted(found) == sorted(table.to_pyarrow_table()["id"].to_pylist())


@pytest.mark.extra
@pytest.mark.spark
@pytest.mark.parametrize("case", ["later"])
def test_delta_spark_goes_on_and_agrees(tmp_path: Path, case: str) -> None:
    root, out = tmp_path / "t", tmp_path / "out.json"
    written(root, case)
    by_delta_spark(
        "statements", str(root), str(out), "INSERT INTO {t} VALUES (100)", "DELETE FROM {t} WHERE id = 3"
    )
    said = json.loads(out.read_text())
    times = {int(version): time_ms for version, time_ms in said["times"].items()}
    table = DeltaTable(root)
    assert {entry.version: entry.timestamp_ms for entry in table.history()} == times
    for version, time_ms in times.items():
        assert said["found"][str(version)] == version
        table.load_as_version(timestamp_ms=time_ms)
        assert table.version() == version
    last = max(times)
    write_deltalake(root, rows(200), mode="append")
    table = DeltaTable(root)
    since = int(table.metadata().configuration[ENABLEMENT_PROPERTIES[0]])
    newest = {entry.version: entry.timestamp_ms for entry in table.history()}
    assert newest[last + 1] > times[last]
    assert all(newest[a] < newest[b] for a, b in pairwise(range(since, last + 2)))
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 4, 5, 100, 200]
