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
