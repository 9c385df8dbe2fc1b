"""Waiting for a partition, and for data that is fresh, on tables that other engines write."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import time
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.conditions.freshness import FreshnessCondition
from delta_airflow.conditions.partition import PartitionCondition
from delta_airflow.sensors.condition import DeltaConditionSensor
from delta_airflow.sensors.freshness import DeltaFreshnessSensor
from delta_airflow.sensors.partition import DeltaPartitionSensor
from delta_airflow.sensors.table_version import DeltaTableVersionSensor
from delta_airflow.triggers.condition import DeltaConditionTrigger
from delta_core import DeltaTable, write_deltalake
from delta_core.clock import ManualClock
from delta_core.errors import ConfigurationError
from delta_core.snapshot.snapshot import Snapshot
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.usefixtures("airflow_connection")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


def add(table: Path, day: str, *numbers: int) -> None:
    """Append rows of a day, as one file."""
    rows = pa.table({"day": pa.array([date.fromisoformat(day)] * len(numbers)), "n": list(numbers)})
    peer_write(table, rows, mode="append", partition_by=["day"])


def poke(subject: DeltaConditionSensor) -> PokeReturnValue:
    return subject.poke({})  # type: ignore[typeddict-item]


def first_event(trigger: DeltaConditionTrigger) -> Any:
    async def collect() -> list[Any]:
        return [event async for event in trigger.run()]

    (event,) = asyncio.run(asyncio.wait_for(collect(), PATIENCE_SECONDS))
    return event.payload


# ------------------------------------------------------------ partitions


def partition(table: Path, **changes: Any) -> DeltaPartitionSensor:
    arguments = {"task_id": "wait", "table_uri": str(table), "partition": {"day": "2026-01-02"}}
    return DeltaPartitionSensor(**{**arguments, **changes})


def test_a_partition_is_waited_for_and_its_table_too(table: Path) -> None:
    subject = partition(table)
    assert not poke(subject).is_done
    add(table, "2026-01-01", 1)
    assert not poke(subject).is_done
    add(table, "2026-01-02", 2, 3)
    done = poke(subject)
    assert (done.is_done, done.xcom_value) == (True, {"version": 1, "files": 1, "rows": None})


def test_a_number_of_files_and_of_rows_can_be_asked_for(table: Path) -> None:
    add(table, "2026-01-02", 1, 2)
    add(table, "2026-01-01", 1, 2, 3, 4)
    assert not poke(partition(table, min_files="2")).is_done
    assert not poke(partition(table, min_rows=3)).is_done
    add(table, "2026-01-02", 3)
    assert poke(partition(table, min_files=2, min_rows="3")).xcom_value == {
        "version": 2,
        "files": 2,
        "rows": 3,
    }


def test_rows_that_a_deletion_vector_names_do_not_count(table: Path) -> None:
    rows = pa.table({"day": ["a"] * 4, "n": [1, 2, 3, 4]})
    write_deltalake(table, rows, partition_by=["day"], configuration={"delta.enableDeletionVectors": "true"})
    assert poke(partition(table, partition={"day": "a"}, min_rows=4)).is_done
    DeltaTable(table).delete("n = 2")
    assert not poke(partition(table, partition={"day": "a"}, min_rows=4)).is_done
    assert poke(partition(table, partition={"day": "a"}, min_rows=3)).xcom_value["rows"] == 3


def test_a_partition_that_was_deleted_is_not_there(table: Path) -> None:
    add(table, "2026-01-02", 1)
    add(table, "2026-01-01", 1)
    PeerTable(table).delete("day = '2026-01-02'")
    assert not poke(partition(table)).is_done


@pytest.mark.parametrize(
    ("kind", "value", "other", "asked"),
    [
        (pa.int32(), 7, 8, "007"),
        (pa.int32(), 7, 8, 7),
        (pa.bool_(), True, False, True),
        (pa.string(), 'it\'s a "b"/%', "c", 'it\'s a "b"/%'),
    ],
)
def test_values_are_compared_as_what_they_are(
    table: Path, kind: pa.DataType, value: object, other: object, asked: object
) -> None:
    rows = pa.table({"p": pa.array([value, other], kind), "q": ["x", "y"], "n": [1, 2]})
    write_deltalake(table, rows, partition_by=["p", "q"])
    assert poke(partition(table, partition={"P": asked})).xcom_value["files"] == 1
    assert poke(partition(table, partition={"p": asked, "q": "x"})).is_done
    assert not poke(partition(table, partition={"p": asked, "q": "y"})).is_done


def test_a_partition_of_a_mapped_column_is_found_by_its_name(table: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    rows = pa.table({"the day": ["a", "b"], "n": [1, 2]})
    write_deltalake(table, rows, partition_by=["the day"], configuration=properties)
    assert poke(partition(table, partition={"the day": "b"})).is_done


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"partition": {"n": "1"}}, "no partition column n"),
        ({"partition": {"day": "soon"}}, "not a valid value of the partition column day"),
        ({"partition": {}}, "names no partition"),
        ({"partition": {"day": None}}, "partition"),
        ({"min_files": 0}, "min_files"),
        ({"min_rows": "x"}, "min_rows"),
        ({"table_uri": "relative"}, "relative"),
    ],
)
def test_a_partition_that_cannot_be_fails_for_good(table: Path, changes: dict[str, Any], words: str) -> None:
    add(table, "2026-01-01", 1)
    with pytest.raises(AirflowFailException, match=words):
        poke(partition(table, **changes))


def test_files_without_statistics_cannot_be_counted_by_rows(table: Path) -> None:
    write_deltalake(
        table,
        pa.table({"day": ["a"], "n": [1]}),
        partition_by=["day"],
    )
    log = table / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace("numRecords", "numOther"))
    with pytest.raises(AirflowFailException, match="has no statistics"):
        poke(partition(table, partition={"day": "a"}, min_rows=1))
    assert poke(partition(table, partition={"day": "a"})).is_done


def test_a_look_at_an_unchanged_table_reads_nothing(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(table, "2026-01-01", 1)
    condition = PartitionCondition(table.as_uri(), {"day": "2026-01-02"})
    assert condition.check() is None

    def read(*_: object, **__: object) -> None:
        raise AssertionError("nothing is to be read")

    monkeypatch.setattr(Snapshot, "load", read)
    monkeypatch.setattr(type(condition.store), "read", read)
    assert condition.check() is None


# ------------------------------------------------------------ freshness


def freshness(table: Path, **changes: Any) -> DeltaFreshnessSensor:
    arguments = {"task_id": "wait", "table_uri": str(table), "max_age_minutes": 30}
    return DeltaFreshnessSensor(**{**arguments, **changes})


def age(table: Path, version: int, *, minutes: float) -> None:
    """Make a commit look as if it had been made that long ago."""
    then = time.time() - minutes * 60
    os.utime(table / "_delta_log" / f"{version:020}.json", (then, then))


def test_a_table_is_fresh_when_its_newest_change_is_young(table: Path) -> None:
    subject = freshness(table)
    assert not poke(subject).is_done
    add(table, "2026-01-01", 1)
    age(table, 0, minutes=31)
    assert not poke(subject).is_done
    add(table, "2026-01-02", 1)
    found = poke(subject).xcom_value
    assert found["version"] == 1
    assert 0 <= found["age_seconds"] < 1800
    assert abs(found["timestamp_ms"] / 1000 - time.time()) < 1800


def test_maintenance_and_definitions_make_no_table_fresh(table: Path) -> None:
    for number in (1, 2):
        add(table, "2026-01-01", number)
        age(table, number - 1, minutes=90)
    subject = freshness(table)
    assert not poke(subject).is_done
    PeerTable(table).optimize.compact()
    DeltaTable(table).alter.set_properties({"delta.appendOnly": "false"})
    assert PeerTable(table).version() == 3
    assert not poke(subject).is_done
    assert not poke(freshness(table)).is_done, "also when the sensor has seen nothing before"
    assert poke(freshness(table, max_age_minutes="100")).xcom_value["version"] == 1


def test_a_change_below_younger_maintenance_is_found(table: Path) -> None:
    for number in (1, 2):
        add(table, "2026-01-01", number)
    PeerTable(table).optimize.compact()
    assert poke(freshness(table)).xcom_value["version"] == 1


def test_times_in_commits_count_where_the_table_has_them(table: Path) -> None:
    rows = pa.table({"n": [1]})
    write_deltalake(table, rows, configuration={"delta.enableInCommitTimestamps": "true"})
    age(table, 0, minutes=90)
    assert poke(freshness(table)).is_done, "whatever the file system says of the file"


def test_what_was_fresh_once_is_asked_anew_by_a_clock(table: Path) -> None:
    add(table, "2026-01-01", 1)
    clock = ManualClock(int(time.time() * 1000))
    assert FreshnessCondition(table.as_uri(), 60, clock=clock).check() is not None
    clock.advance(3600)
    assert FreshnessCondition(table.as_uri(), 60, clock=clock).check() is None


@pytest.mark.parametrize("minutes", ["", "None", "x", -1])
def test_an_age_that_is_none_fails_for_good(table: Path, minutes: object) -> None:
    with pytest.raises(AirflowFailException, match="max_age_minutes"):
        poke(freshness(table, max_age_minutes=minutes))


# ------------------------------------------------------------ in the triggerer


def deferred(subject: DeltaConditionSensor) -> DeltaConditionTrigger:
    with pytest.raises(TaskDeferred) as caught:
        subject.execute({})  # type: ignore[typeddict-item]
    trigger = caught.value.trigger
    assert isinstance(trigger, DeltaConditionTrigger)
    assert caught.value.method_name == "execute_complete"
    path, arguments = trigger.serialize()
    assert path == f"{type(trigger).__module__}.{type(trigger).__name__}"
    again = type(trigger)(**arguments)
    assert again.serialize() == (path, arguments)
    return again


def test_a_partition_is_waited_for_in_the_triggerer(table: Path) -> None:
    subject = partition(table, deferrable=True, poke_interval=0.1, min_rows=1)
    trigger = deferred(subject)
    add(table, "2026-01-02", 1)
    event = first_event(trigger)
    expected: Mapping[str, Any] = {"version": 0, "files": 1, "rows": 1}
    assert event == expected
    assert subject.execute_complete({}, event) == expected  # type: ignore[typeddict-item]
    assert subject.execute({}) == expected, "at once, now that it is there"  # type: ignore[typeddict-item]


def test_freshness_is_waited_for_in_the_triggerer(table: Path) -> None:
    trigger = deferred(freshness(table, deferrable=True, poke_interval=0.1))
    add(table, "2026-01-02", 1)
    assert first_event(trigger)["version"] == 0


def test_an_error_ends_the_wait_in_the_triggerer(table: Path) -> None:
    add(table, "2026-01-01", 1)
    trigger = deferred(partition(table, deferrable=True))
    trigger.partition = {"n": "1"}  # type: ignore[attr-defined]
    assert first_event(trigger)["error"]["code"] == ConfigurationError.code


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (DeltaTableVersionSensor, {"version": 0}),
        (DeltaPartitionSensor, {"partition": {"day": "x"}}),
        (DeltaFreshnessSensor, {"max_age_minutes": 1}),
    ],
)
def test_sensors_wait_where_airflow_is_told_to_by_default(
    make: Any, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules[make.__module__]
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    try:
        told = getattr(importlib.reload(module), make.__name__)
    finally:
        monkeypatch.undo()
        importlib.reload(module)
    assert told(task_id="t", table_uri="/t", **arguments).deferrable is True
    assert make(task_id="t", table_uri="/t", **arguments).deferrable is False
    assert make(task_id="t", table_uri="/t", deferrable=True, **arguments).deferrable is True
    assert {"table_uri", "conn_id", *arguments} <= set(make.template_fields)
