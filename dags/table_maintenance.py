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

from delta_airflow.dag_factory import maintenance_dag

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
ROOT = {"DELTAWARD_TABLES_ROOT": os.environ.get("DELTAWARD_TABLES_ROOT") or f"{HOME}/deltaward/tables"}
POLICIES = Path(os.environ.get("DELTAWARD_POLICIES") or Path(__file__).parent / "config" / "tables.yaml")

dag = maintenance_dag(
    POLICIES,
    schedule=os.environ.get("DELTAWARD_MAINTENANCE_SCHEDULE", "@daily") or None,
    environment=ROOT,
    doc_md=__doc__,
)
