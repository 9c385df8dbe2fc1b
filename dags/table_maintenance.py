"""Keeps every table of `config/tables.yaml` healthy: observe, plan, rewrite, checkpoint, vacuum, verify.

The tables are worked on independently: one that fails fails the run, the others go on to their end. Only
what the plan finds due is done. Rewriting puts small files together or, where the policy names columns to
cluster by, puts the rows in Z-order, which does that too; a table with clustering columns goes by those.
Vacuum deletes what the policy's retention has passed where the policy says `dry_run: false`, and elsewhere
plans: what it would delete, with bytes and a reason per file, is in the result of the task `vacuum`.

Environment: DELTAWARD_POLICIES (default: `config/tables.yaml` beside this file), DELTAWARD_TABLES_ROOT, which
that file names, DELTAWARD_MAINTENANCE_SCHEDULE (default: daily; empty: none). Connection:
`deltaward_default`; what rewrites files runs on its runner, the rest in the worker.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import Param, dag, task, task_group
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from delta_airflow.operators.checkpoint import DeltaCheckpointOperator
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator

HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
ROOT = {"DELTAWARD_TABLES_ROOT": os.environ.get("DELTAWARD_TABLES_ROOT") or f"{HOME}/deltaward/tables"}
POLICIES = Path(os.environ.get("DELTAWARD_POLICIES") or Path(__file__).parent / "config" / "tables.yaml")
# A plan as if the retention were over: shows what will go, and deletes nothing whatever the policy says.
PREVIEW = {"dry_run": True, "retention_hours": 0, "enforce_retention": False, "force": True}
TABLE_NAME = "{{ ti.xcom_pull(task_ids='tables')[ti.map_index]['name'] }}"
# What the plan says: none for a table with clustering columns, whatever the policy names.
ORDER_BY = (
    "{{ (ti.xcom_pull(task_ids='maintain.plan', map_indexes=ti.map_index)['output']['decisions']"
    " | selectattr('verb', 'equalto', 'cluster') | first).params.z_order_by | default([]) | tojson }}"
)


def only_if_due(verb: str, *, unless: str | None = None) -> Any:
    """Skip a task unless the plan for its table found the verb due; say why.

    Args:
        unless: a verb that does this one's work too when it is due itself.
    """

    def check(context: Any) -> None:
        decisions = _decisions(context)
        if not decisions[verb]["due"]:
            raise AirflowSkipException(decisions[verb]["reason"])
        if unless and decisions[unless]["due"]:
            raise AirflowSkipException(f"{unless} does that: {decisions[unless]['reason']}")

    return check


def delete_only_if_due(context: Any) -> None:
    """A vacuum plan costs little and is always made; what deletes must be due."""
    if not context["task"].job_parameters["dry_run"]:
        only_if_due("vacuum")(context)


def _decisions(context: Any) -> dict[str, dict[str, Any]]:
    instance = context["ti"]
    plan = instance.xcom_pull(task_ids="maintain.plan", map_indexes=instance.map_index)["output"]
    return {decision["verb"]: decision for decision in plan["decisions"]}


@task
def tables(params: Any = None) -> list[dict[str, Any]]:
    """The tables that the run is for, each with the rules that the policies resolve to."""
    from delta_core.policies.load import load_policies
    from delta_core.policies.resolve import resolve_all

    policies = resolve_all(load_policies(POLICIES, environment={**os.environ, **ROOT}))
    preview = PREVIEW if params["vacuum_preview"] else {}
    wanted = set(params["tables"]) or {policy.name for policy in policies}
    if unknown := sorted(wanted - {policy.name for policy in policies}):
        raise AirflowFailException(f"{POLICIES} does not name {', '.join(unknown)}")
    return [
        {
            "name": policy.name,
            "table_uri": policy.uri,
            "rules": policy.rules().to_json(),
            "target_bytes": policy.compaction.target_size_bytes,
            "vacuum": {
                "dry_run": policy.vacuum.dry_run,
                "retention_hours": policy.vacuum.retention_hours,
                **preview,
            },
        }
        for policy in policies
        if policy.name in wanted
    ]


@task_group
def maintain(name: str, table_uri: str, rules: Any, target_bytes: int | None, vacuum: Any) -> None:
    shared: dict[str, Any] = {
        "table_uri": table_uri,
        "trigger_rule": "none_failed",
        "map_index_template": TABLE_NAME,
    }
    inline: dict[str, Any] = {**shared, "runner": "inline"}
    observe = DeltaJobOperator(task_id="observe", kind="observe", **inline)
    plan = DeltaJobOperator(task_id="plan", kind="plan", job_parameters={"rules": rules}, **inline)
    rewrite: dict[str, Any] = {"target_size_bytes": target_bytes, **shared}
    due = only_if_due("optimize", unless="cluster")
    compact = DeltaOptimizeOperator(task_id="compact", pre_execute=due, **rewrite)
    due = only_if_due("cluster")
    cluster = DeltaOptimizeOperator(task_id="cluster", z_order_by=ORDER_BY, pre_execute=due, **rewrite)
    due = only_if_due("checkpoint")
    checkpoint = DeltaCheckpointOperator(task_id="checkpoint", pre_execute=due, **inline)
    removed = DeltaJobOperator(
        task_id="vacuum", kind="vacuum", job_parameters=vacuum, pre_execute=delete_only_if_due, **inline
    )
    verify = DeltaJobOperator(
        task_id="verify",
        kind="verify",
        job_parameters='{"version_from": {{ ti.xcom_pull(task_ids="maintain.observe", '
        'map_indexes=ti.map_index)["version_from"] }} }',
        **inline,
    )
    observe >> plan >> compact >> cluster >> checkpoint >> removed >> verify


@task(trigger_rule="all_done")
def record(tables: list[dict[str, Any]], ti: Any = None) -> list[dict[str, Any]]:
    """What became of each table, and a failure when one was not verified."""
    steps = ("plan", "compact", "cluster", "vacuum", "verify")
    for index, table in enumerate(tables):
        table |= {step: ti.xcom_pull(task_ids=f"maintain.{step}", map_indexes=index) for step in steps}
    if failed := [table["name"] for table in tables if not table["verify"]]:
        raise AirflowFailException(f"Not verified: {', '.join(failed)}")
    return tables


@dag(
    schedule=os.environ.get("DELTAWARD_MAINTENANCE_SCHEDULE", "@daily") or None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    description="Keep the tables of the registry healthy: observe, plan, do what is due, verify",
    doc_md=__doc__,
    tags=["deltaward", "maintenance"],
    params={
        "tables": Param([], type="array", items={"type": "string"}, description="Names; none means all"),
        "vacuum_preview": Param(False, type="boolean", description="Plan vacuum as if retention were over"),
    },
)
def table_maintenance() -> None:
    known = tables()
    maintain.expand_kwargs(known) >> record(known)


table_maintenance()
