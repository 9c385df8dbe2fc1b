"""Brings a table back to an earlier version: plan, ask, restore, verify.

The dry run finds the exact difference: files, bytes, the rows that would be lost and those that would come
back, what is undone and by whom. A person approves or rejects it under *Required Actions*; without an answer
in time it is rejected. What is restored is what was approved: a table that has moved on meanwhile is left as
it is and the run fails. The restore is a new version with the earlier one's content, so it can be undone the
same way; the approver's name stands in the commit.

The run's state says whether the table was put back. A rejected run fails, in the task `outcome`, which names
who rejected it. When nothing is to be done, or with `dry_run_only`, it succeeds and the rest is skipped.

Environment: DELTAWARD_APPROVERS (user ids with commas between them; empty: whoever may answer in Airflow),
DELTAWARD_ALLOW_WAIVED_APPROVAL (`true` on the workers lets `waive_approval` skip the question), and that of
every DAG (docs/dags/README.md). The work reads the files that differ and runs in the worker.
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
# A retry finds that the try before has restored the table.
RESTORED = (
    '{{ (ti.xcom_pull(task_ids="restore")["applied_by"] or '
    '{"version": ti.xcom_pull(task_ids="restore")["version_to"]})["version"] }}'
)


@task.short_circuit
def apply(params: dict[str, Any], ti: Any = None) -> bool:
    """Go on unless only the plan was asked for, or there is nothing to do; nobody is asked in vain."""
    planned = ti.xcom_pull(task_ids="dry_run")
    if params["dry_run_only"] or planned["output"]["is_empty"]:
        return False
    if missing := planned["predicted"]["files_missing"]:
        raise AirflowFailException(
            f"{missing} data files of version {planned['output']['target_version']} are gone. Restore a "
            "later version, bring them back, or lose their rows: deltaward restore --ignore-missing-files"
        )
    return True


@task(trigger_rule="none_failed")
def outcome(params: dict[str, Any], ti: Any = None) -> dict[str, Any]:
    """Say how it ended; fail unless the table was restored."""
    answer = ti.xcom_pull(task_ids="approve", key="answer")
    if answer["chosen_options"] != [DeltaApprovalOperator.APPROVE]:
        person = answer["responded_by_user"]
        who = f"by {person['name']}" if person else f"as nobody answered in {params['response_hours']} hours"
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
    description="Put a table back to a version or a time, after a dry run and an approval",
    doc_md=__doc__,
    tags=["deltaward", "rollback"],
    params={
        "table": Param(type="string", minLength=1, description="The table's absolute path or URI"),
        "version": Param(None, type=["null", "integer"], minimum=0, description="This or a timestamp"),
        "timestamp": Param(
            None, type=["null", "string"], description="ISO 8601: the version that was current then"
        ),
        "dry_run_only": Param(False, type="boolean", description="Only plan"),
        "response_hours": Param(24, type="number", exclusiveMinimum=0, description="Then it is rejected"),
        "sample_rows": Param(
            5, type="integer", minimum=0, maximum=20, description="Rows to show; they are kept in Airflow"
        ),
        "waive_approval": Param(False, type="boolean", description="Ask nobody, where that is allowed"),
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
        # A run that is cleared plans anew, and what is approved then is other work.
        work_name="rollback {{ run_id }} from " + PLANNED_FROM + " to " + PLANNED_VERSION,
        # The plan was for the table as it was: cleared alone, the task says that it was restored.
        on_clear="keep",
        lease="maintenance",
        dry_run=False,
    )
    verified = DeltaJobOperator(
        task_id="verify",
        table_uri=table_uri,
        kind="verify",
        runner="inline",
        # Others may write by now: what is compared is the version that the restore has made.
        job_parameters=f'{{"version_from": {PLANNED_VERSION}, "version_to": {RESTORED}}}',
    )
    planned >> apply() >> approved >> restored >> verified >> outcome()


table_rollback()
