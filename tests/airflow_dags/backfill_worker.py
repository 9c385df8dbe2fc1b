"""Runs one DAG in this process for one date after the other and prints what each load said.

python backfill_worker.py DAG_ID REQUESTS_JSON, each [the date after which the run takes place, conf]
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pendulum


def main(dag_id: str, requests: list[tuple[str, dict[str, Any] | None]]) -> None:
    from airflow.dag_processing.dagbag import BundleDagBag

    folder = os.environ["AIRFLOW__CORE__DAGS_FOLDER"]
    seen = []
    for date, conf in requests:
        # Anew for each run: `dag.test` leaves a run's conf in the params.
        bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="dags-folder")
        assert not bag.import_errors, bag.import_errors
        run = bag.dags[dag_id].test(logical_date=pendulum.parse(date), run_conf=conf)
        (task,) = run.get_task_instances()
        seen.append(
            {
                "run_id": run.run_id,
                "start": run.data_interval_start.date().isoformat(),
                "state": run.state.value,
                "load": task.xcom_pull(task_ids=task.task_id),
            }
        )
    print("SEEN " + json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
