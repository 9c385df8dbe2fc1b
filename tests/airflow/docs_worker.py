"""Runs DAGs of a folder in this process and prints what came of them; started by test_docs.py.

python docs_worker.py DAG_ID[=CONF_JSON][@USER[:OPTION]]...

USER answers what the DAG asks, with OPTION or else Approve.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext

from airflow.dag_processing.dagbag import DagBag

from tests.support.approvals import answering


def main(arguments: list[str]) -> None:
    bag = DagBag()
    seen: dict[str, object] = {"import_errors": {str(k): str(v) for k, v in bag.import_errors.items()}}
    for argument in arguments:
        wanted, _, answer = argument.partition("@")
        user, _, option = answer.partition(":")
        dag_id, _, conf = wanted.partition("=")
        with answering(dag_id, option=option or "Approve", user=user) if user else nullcontext():
            run = bag.dags[dag_id].test(run_conf=json.loads(conf) if conf else None)
        seen[argument] = {
            "state": run.state.value,
            "xcoms": {
                f"{instance.task_id}[{instance.map_index}]": instance.xcom_pull(
                    task_ids=instance.task_id, map_indexes=instance.map_index
                )
                for instance in run.get_task_instances()
            },
            "states": {
                f"{instance.task_id}[{instance.map_index}]": instance.state
                for instance in run.get_task_instances()
            },
        }
    seen["spark_loaded"] = "pyspark" in sys.modules
    print("SEEN " + json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1:])
