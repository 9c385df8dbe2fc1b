"""A stream's pin keeps what the stream has not read, in vacuum and in log cleanup."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.errors import ConfigurationError, LeaseLostError, MissingDataFileError
from delta_core.follow import StreamPosition
from delta_core.jobs import JobContext, JobSpec, TableRef, run_job


def append(table: Path, number: int) -> None:
    rows = pa.table({"id": pa.array([number], pa.int64())})
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(table), rows, mode="append", configuration=feed)


def read(
    table: Path, since: StreamPosition | None = None, **options: Any
) -> tuple[list[int], StreamPosition]:
    """The ids that a stream reads now, and its last position."""
    found: list[int] = []
    position = since
    for batch in DeltaTable(str(table)).follow(since, **options):
        found += batch.to_table()["id"].to_pylist()
        position = batch.position
    assert position is not None
    return sorted(found), position


def vacuum(table: Path) -> int:
    """How many files a vacuum without any retention deletes."""
    handle = DeltaTable(str(table))
    return len(handle.vacuum(0, enforce_retention=False, force=True, dry_run=False))


def pins(table: Path) -> list[dict[str, Any]]:
    result = run_job(JobSpec(kind="describe", table=TableRef(uri=str(table))), JobContext())
    found: list[dict[str, Any]] = result.output["pins"]
    return found


def test_a_pin_keeps_files_that_are_live_no_longer(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    ids, position = read(tmp_path, pin="copy")
    assert ids == [1, 2]
    (pin,) = pins(tmp_path)
    assert (pin["holder"], pin["version"], pin["following"]) == ("the stream copy", 1, "commits")
    append(tmp_path, 3)
    append(tmp_path, 4)
    DeltaTable(str(tmp_path)).optimize.compact()
    assert vacuum(tmp_path) == 2, "the files of the versions that the stream has read"
    ids, position = read(tmp_path, position, pin="copy")
    assert ids == [3, 4]
    assert [pin["version"] for pin in pins(tmp_path)] == [DeltaTable(str(tmp_path)).version()]
    assert vacuum(tmp_path) == 2


def test_without_a_pin_the_files_are_gone(tmp_path: Path) -> None:
    append(tmp_path, 1)
    _, position = read(tmp_path)
    append(tmp_path, 2)
    append(tmp_path, 3)
    DeltaTable(str(tmp_path)).optimize.compact()
    assert vacuum(tmp_path) == 3
    with pytest.raises(MissingDataFileError):
        read(tmp_path, position)


def test_a_change_feed_needs_removed_files(tmp_path: Path) -> None:
    append(tmp_path, 1)
    _, position = read(tmp_path, pin="feed", change_feed=True, starting_version=0)
    DeltaTable(str(tmp_path)).delete("id = 1")
    assert vacuum(tmp_path) == 0
    rows = [
        row
        for batch in DeltaTable(str(tmp_path)).follow(position, change_feed=True, pin="feed")
        for row in batch.to_table().select(["id", "_change_type"]).to_pylist()
    ]
    assert rows == [{"id": 1, "_change_type": "delete"}]
    assert vacuum(tmp_path) == 1


def test_a_pin_keeps_the_log(tmp_path: Path) -> None:
    append(tmp_path, 0)
    _, position = read(tmp_path, pin="slow")
    for number in range(1, 5):
        append(tmp_path, number)
    table = DeltaTable(str(tmp_path))
    table.create_checkpoint()
    cleaned = cleanup_expired_logs(table.snapshot, retention_ms=0)
    assert [pin.holder for pin in cleaned.pins] == ["the stream slow"]
    assert read(tmp_path, position, pin="slow")[0] == [1, 2, 3, 4]


def test_one_stream_at_a_time_has_a_name(tmp_path: Path) -> None:
    append(tmp_path, 1)
    first = DeltaTable(str(tmp_path)).follow(pin="one", pin_seconds=0.2, wait=True, poll_seconds=0.01)
    next(first)
    assert read(tmp_path, pin="one")[0] == [1]
    append(tmp_path, 2)
    time.sleep(0.15)
    with pytest.raises(LeaseLostError, match="taken over"):
        next(first)
    with pytest.raises(ConfigurationError, match="pin of a stream"):
        DeltaTable(str(tmp_path)).follow(pin="../one")
