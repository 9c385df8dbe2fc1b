"""Runs the DAG table_rollback in this process, once per request, and prints what came of each.

python rollback_worker.py REQUESTS_JSON, each {"conf", "option", "user", "append", "waive", "hurry"}: `append`
adds a row to that table while the question is open, `waive` is the value of the variable that allows waivers,
`hurry` gives the answer before Airflow has written for the second time that the task waits for it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

from tests.support.approvals import answering

DAG_ID = "table_rollback"


def main(requests: list[dict[str, Any]]) -> None:
    from airflow.dag_processing.dagbag import BundleDagBag

    folder = os.environ["AIRFLOW__CORE__DAGS_FOLDER"]
    seen = []
    for request in requests:
        os.environ["DELTAWARD_ALLOW_WAIVED_APPROVAL"] = request.get("waive", "")
        # Anew for each run: `dag.test` leaves a run's conf in the params.
        bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="dags-folder")
        seen.append(_run(bag.dags[DAG_ID], request))
    print("SEEN " + json.dumps(seen))


def _run(dag: Any, request: dict[str, Any]) -> dict[str, Any]:
    def before() -> None:
        if table := request.get("append"):
            import pyarrow as pa

            from delta_core.dml.write import write_deltalake

            write_deltalake(table, pa.table({"id": [100]}), mode="append")

    option, user = request.get("option", "Reject"), request.get("user", "ann")
    hurry = _parking_late() if request.get("hurry") else nullcontext()
    with answering(DAG_ID, option=option, user=user, before=before) as asked, hurry:
        run = dag.test(run_conf=request["conf"])
    tasks = {instance.task_id: instance for instance in run.get_task_instances()}
    return {
        "state": run.state.value,
        "tasks": {name: task.state and str(task.state) for name, task in tasks.items()},
        "asked": asked,
        "plan": _pulled(tasks["dry_run"], "dry_run"),
        "restore": _pulled(tasks["restore"], "restore"),
        "result": _pulled(tasks["outcome"], "outcome"),
        "outcome": _pulled(tasks["outcome"], "outcome", key="outcome"),
    }


@contextmanager
def _parking_late() -> Iterator[None]:
    """`dag.test` sets a waiting task's state after the task has done so; an answer fits in between."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.state import TaskInstanceState

    set_state = TaskInstance.set_state

    def late(task: TaskInstance, state: str | None, **keywords: Any) -> bool:
        if state == TaskInstanceState.AWAITING_INPUT:
            time.sleep(1.0)
        return set_state(task, state, **keywords)

    with mock.patch.object(TaskInstance, "set_state", late):
        yield


def _pulled(task: Any, name: str, **options: str) -> Any:
    return task.xcom_pull(task_ids=name, **options)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
