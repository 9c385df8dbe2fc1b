"""The arguments that `delta_maintenance` gives its operators."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG

from delta_airflow.operators.spark_base import SparkOperator
from delta_airflow.spark_arguments import SparkArguments
from delta_airflow.task_groups.maintenance import delta_maintenance

_SPARK: dict[str, Any] = {"spark_conn_id": "company_spark", "executor_memory": "4g", "use_krb5ccache": True}


@pytest.mark.parametrize("given_to", ["default_args", "arguments", "rewrite"])
def test_only_the_tasks_that_rewrite_files_run_on_spark(given_to: str) -> None:
    arguments = {"arguments": _SPARK, "rewrite": {"rewrite": _SPARK}}.get(given_to, {})
    with DAG("upkeep", schedule=None, default_args=_SPARK if given_to == "default_args" else {}) as dag:
        delta_maintenance("policies.yaml", **arguments)
    operators = [task for task in dag.tasks if isinstance(task, SparkOperator)]
    assert {task.label: task.spark_arguments() for task in operators} == {
        **dict.fromkeys(("compact", "cluster"), SparkArguments(**_SPARK)),
        **dict.fromkeys(("plan", "verify", "checkpoint", "vacuum"), SparkArguments()),
    }
