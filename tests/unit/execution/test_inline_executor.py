from __future__ import annotations

import threading
import time

import pytest

from delta_core.errors import ConfigurationError, StorageError
from delta_core.execution.executor import JsonObject
from delta_core.execution.inline_executor import InlineExecutor


def double(task: JsonObject) -> JsonObject:
    return {"value": task["value"] * 2}


def fail_on_three(task: JsonObject) -> JsonObject:
    if task["value"] == 3:
        raise StorageError("three is refused", cause="a test", fix="none")
    return task


def test_every_result_comes_with_its_index() -> None:
    tasks = [{"value": n} for n in range(50)]
    results = dict(InlineExecutor(4).map(double, tasks))
    assert results == {n: {"value": 2 * n} for n in range(50)}


def test_no_tasks_give_no_results() -> None:
    assert list(InlineExecutor(2).map(double, [])) == []


def test_a_task_error_keeps_its_class_and_text() -> None:
    with pytest.raises(StorageError) as caught:
        list(InlineExecutor(2).map(fail_on_three, [{"value": n} for n in range(10)]))
    assert caught.value.problem == "three is refused"


def test_tasks_after_an_error_do_not_start_and_running_ones_end() -> None:
    release = threading.Event()
    started: list[int] = []

    def task(value: JsonObject) -> JsonObject:
        started.append(value["n"])
        if value["n"] == 0:
            release.set()
            raise StorageError("first")
        release.wait(5)
        time.sleep(0.1)  # so that all of them would take ten seconds: time enough to be stopped
        return value

    with pytest.raises(StorageError):
        list(InlineExecutor(1).map(task, [{"n": n} for n in range(100)]))
    assert started[0] == 0
    assert len(started) < 100


def test_closing_early_cancels_the_rest() -> None:
    ran: list[int] = []

    def task(value: JsonObject) -> JsonObject:
        ran.append(value["n"])
        return value

    results = InlineExecutor(1).map(task, [{"n": n} for n in range(1000)])
    index, result = next(results)
    assert result == {"n": index}
    results.close()  # type: ignore[attr-defined]
    assert ran == sorted(ran)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("deltaward_")]


def test_workers_run_side_by_side() -> None:
    barrier = threading.Barrier(3, timeout=300)

    def task(value: JsonObject) -> JsonObject:
        barrier.wait()
        return value

    assert len(list(InlineExecutor(3).map(task, [{}, {}, {}]))) == 3


def test_zero_workers_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 workers"):
        InlineExecutor(0)


def test_the_default_has_a_worker_per_processor() -> None:
    assert InlineExecutor().max_workers >= 1
    assert InlineExecutor().name == "inline"
