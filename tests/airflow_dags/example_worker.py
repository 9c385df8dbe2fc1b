"""Runs a DAG in this process, once for each conf, and prints what became of its tasks.

python example_worker.py DAG_ID CONFS_JSON
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main(dag_id: str, confs: list[dict[str, Any]]) -> None:
    from airflow.dag_processing.dagbag import BundleDagBag

    folder = os.environ["AIRFLOW__CORE__DAGS_FOLDER"]
    runs = []
    for conf in confs:
        # Anew for each run: `dag.test` leaves a run's conf in the params.
        bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="dags-folder")
        run = bag.dags[dag_id].test(run_conf=conf)
        tasks = {task.task_id: task for task in run.get_task_instances()}
        runs.append(
            {
                "state": run.state.value,
                "tasks": {name: task.state and str(task.state) for name, task in tasks.items()},
                "results": {name: task.xcom_pull(task_ids=name) for name, task in tasks.items()},
            }
        )
    print("RUNS " + json.dumps(runs, default=str))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
