"""`DeltaTable.follow`: durable positions, refusals, and what a stream costs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, define_column, write_deltalake
from delta_core.clock import ManualClock
from delta_core.errors import (
    ConfigurationError,
    StreamDataLossError,
    StreamPositionError,
    StreamRestartRequiredError,
    StreamSchemaChangedError,
    StreamTableReplacedError,
    TableChangedError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.follow import BatchPlanner, FollowOptions, PositionFile, StreamPosition
from delta_core.leases.pins import pins_in_force
from delta_core.snapshot.snapshot import Snapshot
from tests.support.counting_store import CountingStore


def append(table: Path, *ids: int, **more: Any) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64())})
    write_deltalake(str(table), rows, mode="append", **more)


def ids_of(batches: Any) -> list[int]:
    return [row for batch in batches for row in batch.to_table()["id"].to_pylist()]


def test_a_position_is_saved_when_the_next_batch_is_taken(tmp_path: Path) -> None:
    table, file = tmp_path / "t", tmp_path / "position"
    for number in range(3):
        append(table, number)
    reader = DeltaTable(str(table)).follow(position_file=file, max_files=1)
    first = next(reader)
    assert PositionFile(file).load() == first.start
    second = next(reader)
    assert PositionFile(file).load() == first.position == second.start
    reader.close()
    # The second batch was never finished, so it comes again, and nothing else does.
    again = ids_of(DeltaTable(str(table)).follow(position_file=file))
    assert sorted([*ids_of([first]), *again]) == [0, 1, 2]
    assert again[:1] == ids_of([second])
    append(table, 3)
    assert ids_of(DeltaTable(str(table)).follow(position_file=file)) == [3]
    assert ids_of(DeltaTable(str(table)).follow(position_file=file)) == []


def test_a_position_goes_through_json_in_the_form_of_delta_spark(tmp_path: Path) -> None:
    append(tmp_path, 1)
    batch = next(DeltaTable(str(tmp_path)).follow())
    document = json.loads(batch.position.to_json())
    assert document == {
        "sourceVersion": 1,
        "reservoirId": DeltaTable(str(tmp_path)).metadata().id,
        "reservoirVersion": 1,
        "index": -1,
        "isStartingVersion": False,
    }
    append(tmp_path, 2)
    assert ids_of(DeltaTable(str(tmp_path)).follow(json.dumps(document))) == [2]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"sourceVersion": 3}', "null", '{"sourceVersion": 1, "reservoirId": 7}']
)
def test_other_strings_are_not_positions(tmp_path: Path, text: str) -> None:
    append(tmp_path, 1)
    with pytest.raises(StreamPositionError):
        list(DeltaTable(str(tmp_path)).follow(text))


def test_waiting_reads_commits_as_they_come(tmp_path: Path) -> None:
    class Writing(ManualClock):
        def sleep(self, seconds: float) -> None:
            append(tmp_path, int(self.monotonic_seconds()))
            super().sleep(seconds)

    append(tmp_path, -1)
    table = DeltaTable(str(tmp_path), clock=Writing())
    reader = table.follow(wait=True, poll_seconds=5, starting_version="latest")
    assert [ids_of([next(reader)]) for _ in range(3)] == [[0], [5], [10]]
    reader.close()


def test_starts(tmp_path: Path) -> None:
    for number in range(3):
        append(tmp_path, number)
    table = DeltaTable(str(tmp_path))
    assert ids_of(table.follow(starting_version=1)) == [1, 2]
    assert ids_of(table.follow(starting_version="latest")) == []
    at_ms = table.history()[1].timestamp_ms
    assert ids_of(table.follow(starting_timestamp=at_ms)) == [1, 2]
    with pytest.raises(VersionNotFoundError):
        list(table.follow(starting_version=3))
    with pytest.raises(ConfigurationError, match="both"):
        table.follow(starting_version=1, starting_timestamp=at_ms)


def test_deletes_and_updates_need_an_option(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    append(tmp_path, 3)
    table = DeltaTable(str(tmp_path))
    table.delete("id = 3")
    append(tmp_path, 4)
    table.update({"id": "id + 10"}, "id = 1")
    append(tmp_path, 5)
    found: list[int] = []
    with pytest.raises(TableChangedError, match="deletes rows"):
        found += ids_of(table.follow(starting_version=0))
    reader = table.follow(starting_version=0)
    assert ids_of([next(reader)]) == [1, 2, 3]
    with pytest.raises(TableChangedError, match="deletes rows"):
        next(reader)
    with pytest.raises(TableChangedError, match="changes rows"):
        list(table.follow(starting_version=0, ignore_deletes=True))
    assert ids_of(table.follow(starting_version=0, skip_change_commits=True)) == [1, 2, 3, 4, 5]
    assert sorted(ids_of(table.follow(starting_version=0, ignore_changes=True))) == [1, 2, 2, 3, 4, 5, 11]


def test_a_new_column_needs_a_restart(tmp_path: Path) -> None:
    append(tmp_path, 1)
    reader = DeltaTable(str(tmp_path)).follow(wait=True)
    first = next(reader)
    rows = pa.table({"id": pa.array([2], pa.int64()), "name": ["b"]})
    write_deltalake(str(tmp_path), rows, mode="append", schema_mode="merge")
    with pytest.raises(StreamRestartRequiredError, match="there is the column name") as caught:
        next(reader)
    assert caught.value.retryable
    again = [b.to_table().to_pylist() for b in DeltaTable(str(tmp_path)).follow(first.position)]
    assert again == [[{"id": 2, "name": "b"}]]


@pytest.mark.parametrize("change", ["rename", "drop", "replace"])
def test_other_changes_of_columns_are_refused(tmp_path: Path, change: str) -> None:
    schema = [define_column("id", pa.int64()), define_column("n", pa.int32())]
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    table = DeltaTable.create(str(tmp_path), schema, configuration=properties)
    write_deltalake(str(tmp_path), pa.table({"id": [1], "n": pa.array([1], pa.int32())}), mode="append")
    reader = DeltaTable(str(tmp_path)).follow(wait=True)
    position = next(reader).position
    if change == "rename":
        table.alter.rename_column("n", "m")
    elif change == "drop":
        table.alter.drop_columns(["n"])
    else:
        rows = pa.table({"other": ["x"]})
        write_deltalake(str(tmp_path), rows, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(StreamSchemaChangedError):
        next(reader)
    with pytest.raises(StreamSchemaChangedError):
        list(DeltaTable(str(tmp_path)).follow(StreamPosition(table_id=position.table_id, version=1)))


@pytest.mark.parametrize("change", ["widen", "nullable"])
def test_wider_types_and_nulls_need_a_restart(tmp_path: Path, change: str) -> None:
    schema = [define_column("id", pa.int64(), nullable=False), define_column("n", pa.int32())]
    table = DeltaTable.create(str(tmp_path), schema, configuration={"delta.enableTypeWidening": "true"})
    rows = pa.table({"id": [1], "n": pa.array([1], pa.int32())})
    write_deltalake(str(tmp_path), rows, mode="append")
    reader = DeltaTable(str(tmp_path)).follow(wait=True)
    position = next(reader).position
    if change == "widen":
        table.alter.change_type("n", pa.int64())
    else:
        table.alter.drop_not_null("id")
    write_deltalake(str(tmp_path), pa.table({"id": [2], "n": pa.array([2], pa.int32())}), mode="append")
    with pytest.raises(StreamRestartRequiredError):
        next(reader)
    assert ids_of(DeltaTable(str(tmp_path)).follow(position)) == [2]
    from_the_start = StreamPosition(table_id=position.table_id, version=1)
    assert ids_of(DeltaTable(str(tmp_path)).follow(from_the_start)) == [1, 2]


def test_another_table_is_noticed(tmp_path: Path) -> None:
    table, other = tmp_path / "t", tmp_path / "other"
    append(table, 1)
    append(table, 2)
    reader = DeltaTable(str(table)).follow(wait=True)
    position = next(reader).position
    for number in range(3):
        append(other, number)
    shutil.rmtree(table)
    shutil.copytree(other, table)
    with pytest.raises(StreamTableReplacedError):
        next(reader)
    with pytest.raises(StreamTableReplacedError):
        list(DeltaTable(str(table)).follow(position))


def test_a_shorter_table_and_no_table_are_noticed(tmp_path: Path) -> None:
    for number in range(3):
        append(tmp_path, number)
    readers = [DeltaTable(str(tmp_path)).follow(wait=True) for _ in range(2)]
    for reader in readers:
        next(reader)
    for path in tmp_path.glob("_delta_log/*[12].json"):
        path.unlink()
    with pytest.raises(StreamTableReplacedError):
        next(readers[0])
    shutil.rmtree(tmp_path / "_delta_log")
    with pytest.raises(TableNotFoundError):
        next(readers[1])


def test_commits_that_log_cleanup_took(tmp_path: Path) -> None:
    for number in range(6):
        append(tmp_path, number)
    table = DeltaTable(str(tmp_path))
    table.create_checkpoint()
    for version in range(4):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(StreamDataLossError, match="version 1"):
        list(table.follow(starting_version=1))
    assert ids_of(table.follow(starting_version=1, fail_on_data_loss=False)) == [4, 5]
    initial = StreamPosition(table_id=table.metadata().id, version=2, is_initial_snapshot=True)
    with pytest.raises(StreamDataLossError, match="rows of version 2"):
        list(table.follow(initial))


def test_an_idle_stream_costs_one_listing(tmp_path: Path) -> None:
    append(tmp_path, 1)
    store = CountingStore(tmp_path)
    planner = BatchPlanner(Snapshot.load(store), FollowOptions(starting_version=0))
    position = planner.plan_batch(planner.start()).position
    store.reset()
    assert planner.plan_batch(position).position == position
    assert (store.requests.total, store.requests.list_pages) == (1, 1)
    append(tmp_path, 2)
    store.reset()
    assert len(planner.plan_batch(position).files) == 1
    assert (store.requests.total, store.requests.list_pages) == (2, 1)


def test_a_stream_can_pin_what_it_reads_next(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    table = DeltaTable(str(tmp_path))
    reader = table.follow(max_files=1, pin_seconds=600)
    next(reader)
    assert [pin.version for pin in pins_in_force(table.store, store_now_ms=0)] == [1]
    assert len(ids_of(reader)) == 1
    assert pins_in_force(table.store, store_now_ms=0) == ()


def test_where_a_position_cannot_be_kept(tmp_path: Path) -> None:
    append(tmp_path / "t", 1)
    table = DeltaTable(str(tmp_path / "t"))
    for place in ("s3://bucket/position", tmp_path / "no" / "position"):
        with pytest.raises(ConfigurationError, match="cannot be kept"):
            table.follow(position_file=place)
    (tmp_path / "position").write_text("nothing")
    with pytest.raises(StreamPositionError):
        list(table.follow(position_file=tmp_path / "position"))


@pytest.mark.parametrize(
    "arguments", [{"max_files": 0}, {"max_bytes": -1}, {"poll_seconds": 0}, {"since": 3}]
)
def test_wrong_arguments(tmp_path: Path, arguments: dict[str, Any]) -> None:
    append(tmp_path, 1)
    with pytest.raises(ConfigurationError):
        DeltaTable(str(tmp_path)).follow(**arguments)


def test_columns_filters_and_partitions(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "day": ["a", "b", "a"]})
    write_deltalake(str(tmp_path), rows, mode="append", partition_by=["day"])
    found = DeltaTable(str(tmp_path)).follow(columns=["day", "id"], filters="day = 'a' AND id > 1")
    assert [row for batch in found for row in batch.to_table().to_pylist()] == [{"day": "a", "id": 3}]
