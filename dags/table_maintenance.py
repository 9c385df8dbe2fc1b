"""Keeps every table of `config/tables.yaml` healthy: plan, rewrite, verify, checkpoint, vacuum.

The tables are worked on independently: one that fails fails the run, the others go on to their end. Only
what the plan finds due is done. Rewriting puts small files together or, where the policy names columns to
cluster by, puts the rows in Z-order, which does that too; a table with clustering columns goes by those. What
was rewritten is compared with what it was made of, even while others write to the table.
Vacuum deletes what the policy's retention has passed where the policy says `dry_run: false`, and elsewhere
plans: what it would delete, with bytes and a reason per file, is in the result of the task `vacuum`.

Environment: DELTAWARD_POLICIES (default: `config/tables.yaml` beside this file), DELTAWARD_TABLES_ROOT, which
that file names, DELTAWARD_MAINTENANCE_SCHEDULE (default: daily; empty: none), and that of every DAG
(docs/dags/README.md). What rewrites files runs on the connection's runner, the rest in the worker.
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
    description="Keep the tables of the registry healthy: plan, do what is due, verify",
    doc_md=__doc__,
    tags=["deltaward", "maintenance"],
    params={
        "tables": Param([], type="array", items={"type": "string"}, description="Names; none means all"),
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
