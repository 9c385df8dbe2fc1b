"""What the tasks of the shipped DAGs have in common, and who is told when one fails."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import DAG, RetryAction
from airflow.sdk.exceptions import AirflowException

from delta_airflow.dag_defaults import connection_param, default_args, notify_of_failure
from delta_airflow.errors import JobLeaseHeldError
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.retries import LEASE_DELAY, DeltaRetryPolicy
from delta_core import write_deltalake
from delta_core.errors import (
    ConcurrentAppendError,
    ConfigurationError,
    ConstraintViolationError,
    LeaseHeldError,
    QualityGateError,
    StorageError,
)
from delta_core.leases import acquire_lease
from delta_core.storage import open_store
from tests.support.cleared_tasks import Instance


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (ConcurrentAppendError("another writer won"), RetryAction.RETRY),
        (StorageError("slow down"), RetryAction.RETRY),
        (LeaseHeldError("held"), RetryAction.RETRY),
        (ConstraintViolationError("id is null"), RetryAction.FAIL),
        (QualityGateError("too many bad rows"), RetryAction.FAIL),
        (ConfigurationError("no such mode"), RetryAction.FAIL),
        (ValueError("of somebody else"), RetryAction.DEFAULT),
        (AirflowException("of Airflow"), RetryAction.DEFAULT),
    ],
)
def test_conflicts_are_tried_again_and_bad_data_fails(error: Exception, action: RetryAction) -> None:
    decision = DeltaRetryPolicy().evaluate(error, try_number=1, max_tries=2)
    assert decision.action is action
    assert (decision.reason is None) is (action is RetryAction.DEFAULT)


def test_a_lease_is_waited_for_until_one_of_a_dead_job_has_run_out() -> None:
    decision = DeltaRetryPolicy().evaluate(LeaseHeldError("held"), try_number=1, max_tries=2)
    assert decision.retry_delay is not None
    assert decision.retry_delay > timedelta(seconds=61)


def test_a_job_whose_lease_is_held_is_waited_for_as_well(airflow_connection: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_deltalake(table, pa.table({"id": [1]}), mode="append")
    acquire_lease(open_store(str(table)), "maintenance")
    operator = DeltaOptimizeOperator(task_id="t", table_uri=str(table), lease="maintenance")
    with pytest.raises(JobLeaseHeldError, match="LEASE_HELD") as caught:
        operator.execute(Instance().context)
    decision = DeltaRetryPolicy().evaluate(caught.value, try_number=1, max_tries=2)
    assert (decision.action, decision.retry_delay) == (RetryAction.RETRY, LEASE_DELAY)


def test_the_policy_is_written_and_read() -> None:
    data = DeltaRetryPolicy().serialize()
    assert isinstance(DeltaRetryPolicy.deserialize(data), DeltaRetryPolicy)


def test_a_task_takes_the_defaults() -> None:
    with DAG("d", schedule=None, default_args=default_args({})):
        task = DeltaOptimizeOperator(task_id="t", table_uri="/t")
    assert (task.retries, task.pool, task.retry_delay) == (2, "default_pool", timedelta(minutes=1))
    assert task.retry_exponential_backoff == 2, "each wait is twice as long as the one before"
    assert isinstance(task.retry_policy, DeltaRetryPolicy)
    assert task.has_on_failure_callback is False


def test_the_environment_says_otherwise() -> None:
    environment = {
        "DELTAWARD_RETRIES": "5",
        "DELTAWARD_RETRY_SECONDS": "7",
        "DELTAWARD_POOL": "delta",
        "DELTAWARD_ON_FAILURE": "company.alerts.page",
        "DELTAWARD_CONN_ID": "lake",
    }
    with DAG("d", schedule=None, default_args=default_args(environment, priority_weight=3)):
        task = DeltaOptimizeOperator(task_id="t", table_uri="/t")
    assert (task.retries, task.pool, task.retry_delay) == (5, "delta", timedelta(seconds=7))
    assert (task.has_on_failure_callback, task.priority_weight) == (True, 3)
    assert connection_param(environment).resolve() == "lake"
    assert connection_param({}).resolve() == "deltaward_default"


@pytest.mark.parametrize(
    ("name", "value"),
    [("DELTAWARD_RETRIES", "many"), ("DELTAWARD_RETRY_SECONDS", "-1"), ("DELTAWARD_ON_FAILURE", "page")],
)
def test_what_means_nothing_is_refused_when_the_dag_is_parsed(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        default_args({name: value})


class Notifier:
    """Called with the context, as Airflow's notifiers are."""

    told: list[Any] = []  # noqa: RUF012 - what all objects of the class were told

    def __call__(self, context: Any) -> None:
        Notifier.told.append(context)


def page(context: Any) -> None:
    Notifier.told.append(("page", context))


def test_who_is_named_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    context: Any = SimpleNamespace()
    Notifier.told.clear()
    notify_of_failure(context)
    assert Notifier.told == []
    for name, told in (("page", ("page", context)), ("Notifier", context)):
        monkeypatch.setenv("DELTAWARD_ON_FAILURE", f"{__name__}.{name}")
        notify_of_failure(context)
        assert Notifier.told[-1] == told
