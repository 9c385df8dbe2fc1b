"""Keeps every table of `config/tables.yaml` healthy: plan, rewrite, verify, checkpoint, vacuum.

The tables are maintained independently: a table that fails makes the run fail, but the tasks of the other
tables complete. Only the maintenance that is due according to the plan runs. Rewriting compacts small files.
If the policy has clustering columns, rewriting also puts the rows in Z-order. The clustering columns of a
clustered table take precedence over those of the policy. The rows of rewritten files are compared with those
of the files that they replace, even while other writers commit to the table. If the policy sets
`dry_run: false`, vacuum deletes files after the policy's retention. Otherwise it only plans: the files that
it would delete, with bytes and a reason per file, are in the result of the task `vacuum`.

Environment: DELTAWARD_POLICIES (default: `config/tables.yaml` beside this file), DELTAWARD_TABLES_ROOT, which
that file uses, DELTAWARD_MAINTENANCE_SCHEDULE (default: daily; empty: no schedule), and the variables of
every DAG (docs/dags/README.md). Tasks that rewrite files run on the connection's runner, the others in the
worker.
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import Param, dag

from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_airflow.task_groups.maintenance import delta_maintenance

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
ROOT = {"DELTAWARD_TABLES_ROOT": os.environ.get("DELTAWARD_TABLES_ROOT") or f"{HOME}/deltaward/tables"}
POLICIES = Path(os.environ.get("DELTAWARD_POLICIES") or Path(__file__).parent / "config" / "tables.yaml")


@dag(
    schedule=os.environ.get("DELTAWARD_MAINTENANCE_SCHEDULE", "@daily") or None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=default_args(conn_id=CONN_ID),
    description="Maintain the tables of the policy file: plan, run the due maintenance, verify",
    doc_md=__doc__,
    tags=["deltaward", "maintenance"],
    params={
        "tables": Param([], type="array", items={"type": "string"}, description="Table names; empty for all"),
        "vacuum_preview": Param(False, type="boolean", description="Plan vacuum as if retention were over"),
        "connection": connection_param(),
    },
)
def table_maintenance() -> None:
    delta_maintenance(
        POLICIES,
        environment=ROOT,
        tables="{{ params.tables | tojson }}",
        vacuum_preview="{{ params.vacuum_preview }}",
    )


table_maintenance()
