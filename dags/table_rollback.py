"""Restores a table to an earlier version: plan, ask for approval, restore, verify.

The dry run determines the exact difference: files, bytes, the rows that would be lost, the rows that would
return, and the commits that are undone with their authors. A person approves or rejects it under *Required
Actions*; without an answer in time, it is rejected. The restore does exactly what was approved: if the table
has a newer version by then, the table is not changed and the run fails. The restore commits a new version
with the content of the earlier one, so it can be undone in the same way. The commit contains the approver's
name.

The state of the run shows whether the table was restored. A rejected run fails in the task `outcome`, which
shows who rejected it. If there is nothing to do, or with `dry_run_only`, the run succeeds and the remaining
tasks are skipped.

Environment: DELTAWARD_APPROVERS (comma-separated user ids; empty: every user who may answer in Airflow),
DELTAWARD_ALLOW_WAIVED_APPROVAL (`true` on the workers allows `waive_approval` to skip the question), and the
variables of every DAG (docs/dags/README.md). The job reads the files that differ and runs in the worker.
"""

from __future__ import annotations

import os
from typing import Any

import pendulum
from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_airflow.operators.approval import DeltaApprovalOperator, approver_of
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.restore import DeltaRestoreOperator

APPROVERS = [name.strip() for name in os.environ.get("DELTAWARD_APPROVERS", "").split(",") if name.strip()]
PLANNED = "ti.xcom_pull(task_ids='dry_run')"
PLANNED_VERSION = f"{{{{ {PLANNED}['output']['target_version'] }}}}"
PLANNED_FROM = f"{{{{ {PLANNED}['version_from'] }}}}"
# On a retry, the earlier try may already have restored the table.
RESTORED = (
    '{{ (ti.xcom_pull(task_ids="restore")["applied_by"] or '
    '{"version": ti.xcom_pull(task_ids="restore")["version_to"]})["version"] }}'
)


@task.short_circuit
def apply(params: dict[str, Any], ti: Any = None) -> bool:
    """Continue unless only a plan was requested or there is nothing to do, so that no approval is wasted."""
    planned = ti.xcom_pull(task_ids="dry_run")
    if params["dry_run_only"] or planned["output"]["is_empty"]:
        return False
    if missing := planned["predicted"]["files_missing"]:
        raise AirflowFailException(
            f"Data files of version {planned['output']['target_version']} are missing in the store: "
            f"{missing}. Restore a later version, recover the files, or give up their rows with "
            "`deltaward restore --ignore-missing-files`."
        )
    return True


@task(trigger_rule="none_failed")
def outcome(params: dict[str, Any], ti: Any = None) -> dict[str, Any]:
    """Report the outcome of the run, and fail unless the table was restored."""
    answer = ti.xcom_pull(task_ids="approve", key="answer")
    if answer["chosen_options"] != [DeltaApprovalOperator.APPROVE]:
        person = answer["responded_by_user"]
        hours = params["response_hours"]
        who = f"by {person['name']}" if person else f"because of no answer within {hours} hours"
        ti.xcom_push(key="outcome", value="rejected")
        raise AirflowFailException(f"Rejected {who}. Nothing was restored.")
    restored = ti.xcom_pull(task_ids="restore")
    ti.xcom_push(key="outcome", value="restored")
    return {"outcome": "restored", "version": restored["version_to"], "approver": approver_of(answer)}


@dag(
    schedule=None,
    start_date=pendulum.datetime(2013, 1, 1, tz="UTC"),
    max_active_runs=1,
    default_args=default_args(conn_id=CONN_ID),
    description="Restore a table to a version or a time, after a dry run and an approval",
    doc_md=__doc__,
    tags=["deltaward", "rollback"],
    params={
        "table": Param(type="string", minLength=1, description="The table's absolute path or URI"),
        "version": Param(None, type=["null", "integer"], minimum=0, description="Either this or timestamp"),
        "timestamp": Param(
            None, type=["null", "string"], description="ISO 8601: the version that was current at this time"
        ),
        "dry_run_only": Param(False, type="boolean", description="Only plan"),
        "response_hours": Param(
            24, type="number", exclusiveMinimum=0, description="Time limit for an answer"
        ),
        "sample_rows": Param(
            5, type="integer", minimum=0, maximum=20, description="Rows to show; Airflow stores them"
        ),
        "waive_approval": Param(False, type="boolean", description="Skip the approval, if allowed"),
        "connection": connection_param(),
    },
)
def table_rollback() -> None:
    table_uri = "{{ params.table }}"
    planned = DeltaRestoreOperator(
        task_id="dry_run",
        table_uri=table_uri,
        version="{{ params.version }}",
        timestamp="{{ params.timestamp }}",
        diff="rows",
        sample_rows="{{ params.sample_rows }}",
    )
    approved = DeltaApprovalOperator(
        task_id="approve",
        subject=f"Restore {table_uri} to version {PLANNED_VERSION}?",
        body=f"{{{{ {PLANNED}['markdown'] }}}}",
        response_hours="{{ params.response_hours }}",
        waive="{{ params.waive_approval }}",
        assigned_users=[{"id": name, "name": name} for name in APPROVERS],
    )
    restored = DeltaRestoreOperator(
        task_id="restore",
        table_uri=table_uri,
        table_id=f"{{{{ {PLANNED}['output']['table_id'] }}}}",
        version=PLANNED_VERSION,
        expected_version=PLANNED_FROM,
        approval_task_id="approve",
        # A cleared run makes a new plan. Restoring by the new plan is different work, with a different name.
        work_name="rollback {{ run_id }} from " + PLANNED_FROM + " to " + PLANNED_VERSION,
        # The plan is for the table as it was. If only this task is cleared, it reports the earlier restore.
        on_clear="keep",
        lease="maintenance",
        dry_run=False,
    )
    verified = DeltaJobOperator(
        task_id="verify",
        table_uri=table_uri,
        kind="verify",
        runner="inline",
        # Compares the version that the restore committed, because other writers may have committed since.
        job_parameters=f'{{"version_from": {PLANNED_VERSION}, "version_to": {RESTORED}}}',
    )
    planned >> apply() >> approved >> restored >> verified >> outcome()


table_rollback()
