"""Waiting for a version. The log's names are all that the sensor looks at, so names are all there is."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.triggers.base import TriggerEvent

import delta_airflow.conditions.version as condition_module
from delta_airflow.errors import TransientJobFailedError
from delta_airflow.sensors.table_version import DeltaTableVersionSensor
from delta_airflow.table_versions import latest_version_from, latest_version_in
from delta_airflow.triggers.table_version import DeltaTableVersionTrigger
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import ConfigurationError, StorageError, StorePermissionError
from tests.support.airflow import connection_json
from tests.support.waiting import PATIENCE_SECONDS


def add_versions(table: Path, *versions: int, suffix: str = ".json") -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    for version in versions:
        (log / f"{version:020d}{suffix}").write_bytes(b"")


@pytest.fixture
def table(tmp_path: Path, airflow_connection: Path) -> Path:
    return tmp_path / "t"


def sensor(table: Path, **changes: Any) -> DeltaTableVersionSensor:
    return DeltaTableVersionSensor(**{"task_id": "wait", "table_uri": str(table), **changes})


def poke(subject: DeltaTableVersionSensor) -> PokeReturnValue:
    return subject.poke({})  # type: ignore[typeddict-item]


def test_the_latest_version_is_found_by_name(table: Path) -> None:
    assert latest_version_from(str(table), 0) is None
    add_versions(table, 0, 1, 2)
    assert latest_version_from(str(table), 0) == 2
    assert latest_version_from(str(table), 2) == 2
    assert latest_version_from(str(table), 3) is None


def test_a_checkpoint_stands_for_its_version_and_other_files_for_none(table: Path) -> None:
    add_versions(table, 0, 1)
    add_versions(table, 7, suffix=".crc")
    (table / "_delta_log" / "_last_checkpoint").write_bytes(b"{}")
    assert latest_version_from(str(table), 2) is None
    add_versions(table, 5, suffix=".checkpoint.parquet")
    assert latest_version_from(str(table), 2) == 5


def test_a_table_that_is_not_there_yet_is_waited_for(table: Path) -> None:
    subject = sensor(table, version=0)
    assert not poke(subject).is_done
    add_versions(table, 0, 1)
    done = poke(subject)
    assert (done.is_done, done.xcom_value) == (True, 1)


def test_version_zero_counts_as_found(table: Path) -> None:
    add_versions(table, 0)
    assert sensor(table, version=0).execute({}) == 0  # type: ignore[typeddict-item]


def test_newer_than_waits_for_the_next_version(table: Path) -> None:
    add_versions(table, 0, 1, 2)
    assert not poke(sensor(table, newer_than="2")).is_done
    assert poke(sensor(table, newer_than="1")).xcom_value == 2
    assert sensor(table, newer_than=-1).minimum_version() == 0


@pytest.mark.parametrize(
    "arguments", [{}, {"version": 1, "newer_than": 1}, {"version": "x"}, {"version": -1}]
)
def test_arguments_that_say_nothing_clear_fail_for_good(table: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException):
        poke(sensor(table, **arguments))


def test_a_table_outside_the_allowed_roots_fails_for_good(
    table: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connection = connection_json(allowed_roots=[str(tmp_path / "lake")])
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", connection)
    with pytest.raises(AirflowFailException, match="allowed_roots"):
        poke(sensor(table, version=0))


def test_deferrable_returns_at_once_when_the_version_is_there(table: Path) -> None:
    add_versions(table, 0)
    assert sensor(table, version=0, deferrable=True).execute({}) == 0  # type: ignore[typeddict-item]


def test_deferrable_hands_over_to_the_trigger(table: Path) -> None:
    subject = sensor(table, newer_than=4, deferrable=True, poke_interval=7, timeout=90)
    with pytest.raises(TaskDeferred) as caught:
        subject.execute({})  # type: ignore[typeddict-item]
    path, arguments = caught.value.trigger.serialize()
    assert path == "delta_airflow.triggers.table_version.DeltaTableVersionTrigger"
    assert arguments == {
        "table_uri": table.as_uri(),
        "minimum_version": 5,
        "conn_id": "deltaward_default",
        "poll_seconds": 7,
    }
    assert caught.value.method_name == "execute_complete"
    assert caught.value.timeout is not None
    assert caught.value.timeout.total_seconds() == 90
    assert DeltaTableVersionTrigger(**arguments).serialize() == (path, arguments)


def test_the_triggers_event_ends_the_wait(table: Path) -> None:
    subject = sensor(table, version=1, deferrable=True)
    assert subject.execute_complete({}, {"version": 3}) == 3  # type: ignore[typeddict-item]
    error = {"code": "STORAGE_ERROR", "message": "m", "retryable": True}
    with pytest.raises(TransientJobFailedError, match="STORAGE_ERROR"):
        subject.execute_complete({}, {"error": error})  # type: ignore[typeddict-item]
    with pytest.raises(AirflowFailException, match="STORAGE_ERROR"):
        subject.execute_complete({}, {"error": {**error, "retryable": False}})  # type: ignore[typeddict-item]


def first_event(subject: DeltaTableVersionTrigger) -> Any:
    async def collect() -> list[TriggerEvent]:
        return [event async for event in subject.run()]

    (event,) = asyncio.run(asyncio.wait_for(collect(), PATIENCE_SECONDS))
    return event.payload


def trigger(table: Path, **changes: Any) -> DeltaTableVersionTrigger:
    arguments = {
        "table_uri": table.as_uri(),
        "minimum_version": 1,
        "conn_id": "deltaward_default",
        "poll_seconds": 0.01,
    }
    return DeltaTableVersionTrigger(**{**arguments, **changes})


def test_the_trigger_polls_until_the_version_is_there_off_the_event_loop(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    stores: set[int] = set()

    def listing(store: Any, version: int) -> int | None:
        threads.append(threading.current_thread())
        stores.add(id(store))
        if len(threads) == 3:
            add_versions(table, 0, 1, 2)
        return latest_version_in(store, version)

    monkeypatch.setattr(condition_module, "latest_version_in", listing)
    assert first_event(trigger(table)) == {"version": 2}
    assert len(threads) == 3
    assert len(stores) == 1, "one store for all looks"
    assert all(thread.name.startswith("deltaward-trigger") for thread in threads)
    assert threading.main_thread() not in threads


def test_the_trigger_waits_out_a_storage_error_that_can_pass(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_versions(table, 0, 1)
    answers = [StorageError("slow down"), None]

    def listing(store: Any, version: int) -> int | None:
        if error := answers.pop(0):
            raise error
        return latest_version_in(store, version)

    monkeypatch.setattr(condition_module, "latest_version_in", listing)
    assert first_event(trigger(table)) == {"version": 1}
    assert answers == []


def test_the_trigger_reports_any_other_error(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(store: Any, version: int) -> int | None:
        raise StorePermissionError("no access")

    monkeypatch.setattr(condition_module, "latest_version_in", refuse)
    event = first_event(trigger(table))
    assert event["error"]["code"] == "STORE_PERMISSION_DENIED"
    assert event["error"]["retryable"] is False
    assert first_event(trigger(table, conn_id="nowhere"))["error"]["code"] == "INVALID_CONFIGURATION"


@pytest.mark.parametrize("changes", [{"minimum_version": -1}, {"poll_seconds": 0}])
def test_a_triggers_arguments_are_checked_when_it_is_made(table: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        trigger(table, **changes)


def test_credentials_that_were_rotated_arrive(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old ones are refused after a while; the connection has new ones by then."""
    add_versions(table, 0, 1)
    answers = [None, StorePermissionError("expired"), None]
    stores: list[int] = []

    def listing(store: Any, version: int) -> int | None:
        stores.append(id(store))
        if error := answers.pop(0):
            raise error
        return None if answers else latest_version_in(store, version)

    monkeypatch.setattr(condition_module, "latest_version_in", listing)
    assert first_event(trigger(table)) == {"version": 1}
    assert stores[0] == stores[1]
    assert len(stores) == 3


def test_many_triggers_on_a_slow_store_do_not_wait_for_each_other(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop's own threads would be six on two cores."""
    add_versions(table, 0, 1)
    at_once, most, lock = 0, 0, threading.Lock()

    def listing(store: Any, version: int) -> int | None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        SYSTEM_CLOCK.sleep(0.05)
        with lock:
            at_once -= 1
        return latest_version_in(store, version)

    monkeypatch.setattr(condition_module, "latest_version_in", listing)

    async def all_of_them() -> int:
        async def one() -> int:
            return len([event async for event in trigger(table).run()])

        return sum(await asyncio.gather(*(one() for _ in range(60))))

    assert asyncio.run(asyncio.wait_for(all_of_them(), PATIENCE_SECONDS)) == 60
    assert most > 20


def test_a_sensor_keeps_its_store_between_pokes(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores: list[Any] = []

    def listing(store: Any, version: int) -> int | None:
        stores.append(store)
        return latest_version_in(store, version)

    monkeypatch.setattr(condition_module, "latest_version_in", listing)
    subject = sensor(table, version=0)
    assert not poke(subject).is_done
    add_versions(table, 0)
    assert poke(subject).is_done
    assert stores[0] is stores[1]
