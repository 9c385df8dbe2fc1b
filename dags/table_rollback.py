"""Brings a table back to an earlier version: plan, restore, verify.

The restore is a new version with the earlier one's content, so nothing is lost and it can be undone the
same way. A timestamp is resolved once, by the dry run; what is restored is what was planned. With
`dry_run_only` the run ends after the plan, which is in the result of the task `dry_run`.

Connection: `deltaward_default`. The work is as large as the table's metadata and runs in the worker.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Param, dag, task

from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.restore import DeltaRestoreOperator

# The version that the dry run planned to bring back; its result keeps how many commits that undoes.
PLANNED_VERSION = (
    "{% set planned = ti.xcom_pull(task_ids='dry_run') %}"
    "{{ planned['version_from'] - planned['predicted']['commits_undone'] }}"
)


@task.short_circuit
def apply(params: dict[str, object]) -> bool:
    """Go on unless only the plan was asked for."""
    return not params["dry_run_only"]


@dag(
    schedule=None,
    start_date=pendulum.datetime(2013, 1, 1, tz="UTC"),
    max_active_runs=1,
    description="Put a table back to a version or a time, after a dry run",
    doc_md=__doc__,
    tags=["deltaward", "rollback"],
    params={
        "table": Param(type="string", minLength=1, description="The table's absolute path or URI"),
        "version": Param(None, type=["null", "integer"], minimum=0, description="This or a timestamp"),
        "timestamp": Param(
            None, type=["null", "string"], description="ISO 8601: the version that was current then"
        ),
        "dry_run_only": Param(False, type="boolean", description="Only plan"),
    },
)
def table_rollback() -> None:
    table_uri = "{{ params.table }}"
    planned = DeltaRestoreOperator(
        task_id="dry_run",
        table_uri=table_uri,
        version="{{ params.version }}",
        timestamp="{{ params.timestamp }}",
    )
    restored = DeltaRestoreOperator(
        task_id="restore", table_uri=table_uri, version=PLANNED_VERSION, dry_run=False
    )
    verified = DeltaJobOperator(
        task_id="verify",
        table_uri=table_uri,
        kind="verify",
        runner="inline",
        job_parameters='{"version_from": ' + PLANNED_VERSION + "}",
    )
    planned >> apply() >> restored >> verified


table_rollback()
