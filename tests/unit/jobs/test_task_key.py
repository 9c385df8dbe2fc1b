"""The key of a task's work: the same for every try of it, another for other work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_airflow.operators.provenance import TaskIdentity, idempotency_key
from delta_core.jobs.job_spec import TableRef

TABLE = TableRef(uri="file:///table", id="11111111-2222-3333-4444-555555555555")
TASK = TaskIdentity(dag_id="dag", task_id="task", run_id="run")


def test_every_try_of_a_task_has_one_key() -> None:
    tries = [replace(TASK, try_number=number, logical_date=f"2026-01-0{number}") for number in (1, 2, 3)]
    assert len({idempotency_key(task, TABLE).app_id for task in tries}) == 1


@pytest.mark.parametrize(
    "other", [{"dag_id": "x"}, {"task_id": "x"}, {"run_id": "x"}, {"map_index": 0}], ids=str
)
def test_other_work_has_another_key(other: dict[str, Any]) -> None:
    assert idempotency_key(replace(TASK, **other), TABLE) != idempotency_key(TASK, TABLE)


@pytest.mark.parametrize("other", [{"uri": "file:///other"}, {"id": "x"}], ids=str)
def test_another_table_has_another_key(other: dict[str, str]) -> None:
    assert idempotency_key(TASK, replace(TABLE, **other)) != idempotency_key(TASK, TABLE)


def test_named_work_has_the_key_of_its_name() -> None:
    elsewhere = replace(TASK, dag_id="backfill", run_id="x")
    assert idempotency_key(TASK, TABLE, name="w") == idempotency_key(elsewhere, TABLE, name="w")
    assert idempotency_key(TASK, TABLE, name="w") != idempotency_key(TASK, TABLE, name="v")
    assert idempotency_key(TASK, TABLE, name="w", version=2).version == 2


# ------------------------------------------------------------ cleared tasks


def cleared(number: int) -> TaskIdentity:
    """The task in a clearing that began at that try."""
    return replace(TASK, try_number=number, clearing=number)


def test_work_that_is_kept_has_one_key_in_every_clearing() -> None:
    for name in (None, "w"):
        assert idempotency_key(cleared(4), TABLE, name=name) == idempotency_key(TASK, TABLE, name=name)


def test_work_that_is_applied_again_goes_a_step_on_in_each_clearing() -> None:
    keys = [idempotency_key(task, TABLE, reapplies=True) for task in (TASK, cleared(2), cleared(5))]
    assert len({key.app_id for key in keys}) == 1
    assert [key.version for key in keys] == [0, 1, 4], "so a driver of an earlier clearing comes too late"
    assert keys[0] == idempotency_key(TASK, TABLE), "a task that nobody cleared has the key that it had"


def test_the_tries_of_a_clearing_have_one_key() -> None:
    tries = [replace(cleared(3), try_number=number) for number in (3, 4, 5)]
    for name in (None, "w"):
        assert len({idempotency_key(task, TABLE, name=name, reapplies=True) for task in tries}) == 1


def test_named_work_that_is_applied_again_stays_the_delivery_that_it_was() -> None:
    named = idempotency_key(TASK, TABLE, name="w", version=7, reapplies=True)
    key = idempotency_key(cleared(2), TABLE, name="w", version=7, reapplies=True)
    assert key.app_id != named.app_id
    assert key.delivery is not None
    assert (key.delivery.app_id, key.delivery.version) == (named.app_id, named.version)
    other = idempotency_key(replace(cleared(2), run_id="x"), TABLE, name="w", version=7, reapplies=True)
    assert other.app_id != key.app_id
