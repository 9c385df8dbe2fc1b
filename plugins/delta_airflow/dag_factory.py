"""DAGs that maintain the tables of a policy file: `fleet_dag` for any number, `maintenance_dag` for a few.

The number of tasks of a `fleet_dag` does not grow with its tables. A `maintenance_dag` shows each step of
each table as a task. Parsing such a DAG reads neither the policy file nor a store. The tasks read the file
when they run.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pendulum
from airflow.sdk import DAG, Asset, Param, get_current_context, task

from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_core.errors import ConfigurationError

MAX_BATCHES: Final = 32
"""The most batches of one step, for each pool."""

_TASKS: Final = "delta_airflow.fleet_tasks"
_APPROVAL: Final = "delta_airflow.fleet_approval"
_TASK_GROUP: Final = "delta_airflow.task_groups.maintenance"
_START: Final = pendulum.datetime(2026, 1, 1, tz="UTC")
_ALL_DONE: Final = "all_done"


def fleet_dag(
    policies: str | os.PathLike[str],
    *,
    dag_id: str = "fleet_maintenance",
    schedule: Any = "@daily",
    batches: int = 8,
    pools: Sequence[str] = ("default_pool",),
    environment: Mapping[str, str] | None = None,
    conn_id: str = CONN_ID,
    assets: Sequence[Asset] = (),
    approval: bool = False,
    response_hours: float = 12,
    **arguments: Any,
) -> DAG:
    """A DAG: `discover >> observe >> rank >> apply >> report`, with `observe` and `apply` in batches.

    `discover` finds the tables. Each batch of `observe` records its tables in the ledger. `rank` decides what
    runs under the budget and in open windows. Each batch of `apply` runs its tables one after the other, each
    under its lease. A batch that was killed continues where it stopped when it is retried. `report` fails the
    run with the names of the tables that failed; a table that failed stops no other.

    With `approval`, a task `approve` asks a person about the verbs whose policy wants an approval. The other
    verbs do not wait for it: `rank >> approve >> apply_approved >> report`. Without it, these verbs run only
    in a run that was triggered with `{"approve": true}`.

    A run has at most `2 + batches + len(pools) * (1 + batches)` task instances for any number of tables, and
    with `approval` at most `1 + len(pools) * (1 + batches)` more.

    Args:
        policies: path of the policy file on the workers. It must have `fleet.control_root`.
        dag_id: the DAG's id.
        schedule: the DAG's schedule.
        batches: number of batches of `observe`, and of `apply` for each pool; at most 32.
        pools: pools of the `apply` tasks. A table whose policy names one of them runs there, any other in the
            first one.
        environment: variables that the policy file may use, in addition to the worker's environment.
        conn_id: connection of type `deltaward`. May be a template. A table whose policy names a connection
            uses that one.
        assets: assets of tables (`delta_airflow.assets.table_asset`) that belong to the fleet, in addition to
            those of the policy file.
        approval: whether the DAG asks a person.
        response_hours: the time for an answer; without one, these verbs do not run.
        arguments: more arguments of the DAG.

    Raises:
        ConfigurationError: `batches` is not from 1 to 32, or a pool is missing or named twice.
    """
    if not 1 <= batches <= MAX_BATCHES:
        raise ConfigurationError(
            f"The number of batches {batches} is not valid.", fix=f"Choose from 1 to {MAX_BATCHES}."
        )
    if not pools or len(set(pools)) != len(pools):
        raise ConfigurationError(
            f"The pools {list(pools)!r} are not valid.", fix="Name at least one pool, and none twice."
        )
    shared = {
        "policies": os.fspath(policies),
        "environment": dict(sorted((environment or {}).items())),
        "conn_id": conn_id,
    }
    dag = _dag(
        dag_id,
        schedule,
        {
            "description": "Maintain all tables of a policy file under a budget",
            "doc_md": fleet_dag.__doc__,
            "tags": ["deltaward", "fleet"],
            "params": {
                "approve": Param(False, type="boolean", description="Also run verbs that need an approval"),
                "connection": connection_param(),
            },
            **arguments,
        },
    )
    with dag:
        found = _discover(shared, batches, sorted(asset.uri for asset in assets))
        observed = _observe.partial(shared=shared).expand(batch=found)
        ranked: Any = _rank(shared, batches, list(pools), approval)
        reported: Any = _report(shared)
        observed >> ranked
        approve: Any = None
        if approval:
            operators = importlib.import_module(_APPROVAL)
            approve = operators.FleetApprovalOperator(
                task_id="approve", shared=shared, response_hours=response_hours
            )
            ranked >> approve
        for number, pool in enumerate(pools):
            suffix = f"_{number}" if number else ""
            # A task can only be mapped over the whole result of another one.
            part: Any = ranked
            if number:
                part = _batches.override(task_id=f"batches{suffix}")(
                    shared, batches, list(pools), number, approval
                )
                ranked >> part
            own = _apply.override(task_id=f"apply{suffix}", pool=pool)
            own.partial(shared=shared).expand(batch=part) >> reported
            if approval:
                part = _approved.override(task_id=f"approved{suffix}")(shared, batches, list(pools), number)
                approve >> part
                own = _apply.override(task_id=f"apply_approved{suffix}", pool=pool)
                own.partial(shared=shared).expand(batch=part) >> reported
    return dag


def maintenance_dag(
    policies: str | os.PathLike[str],
    *,
    dag_id: str = "table_maintenance",
    schedule: Any = "@daily",
    environment: Mapping[str, str] | None = None,
    conn_id: str = CONN_ID,
    verify: bool = True,
    maintenance: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> DAG:
    """A DAG for a handful of tables: each table that has an entry in a policy file has a task for each step.

    It shows more than a `fleet_dag`, and costs seven task instances a table. It has no budget, no windows, no
    ledger, and no prefixes.

    Args:
        policies: path of the policy file on the workers.
        dag_id: the DAG's id.
        schedule: the DAG's schedule.
        environment: variables that the policy file may use, in addition to the worker's environment.
        conn_id: connection of type `deltaward`. May be a template.
        verify: False leaves out the verification of the commits.
        maintenance: more arguments of `delta_maintenance`, such as `lease` or `rewrite`.
        arguments: more arguments of the DAG.
    """
    dag = _dag(
        dag_id,
        schedule,
        {
            "default_args": default_args(conn_id=conn_id),
            "description": "Maintain the tables of the policy file: plan, run the due maintenance, verify",
            "doc_md": maintenance_dag.__doc__,
            "tags": ["deltaward", "maintenance"],
            "params": {
                "tables": Param(
                    [], type="array", items={"type": "string"}, description="Table names; empty for all"
                ),
                "vacuum_preview": Param(
                    False, type="boolean", description="Plan vacuum as if retention were over"
                ),
                "connection": connection_param(),
            },
            **arguments,
        },
    )
    with dag:
        importlib.import_module(_TASK_GROUP).delta_maintenance(
            policies,
            environment=environment,
            tables="{{ params.tables | tojson }}",
            vacuum_preview="{{ params.vacuum_preview }}",
            verify=verify,
            **(maintenance or {}),
        )
    return dag


def _dag(dag_id: str, schedule: Any, arguments: Mapping[str, Any]) -> DAG:
    usual = {
        "start_date": _START,
        "catchup": False,
        "max_active_runs": 1,
        "default_args": default_args(),
    }
    return DAG(dag_id=dag_id, schedule=schedule, **{**usual, **arguments})


def _call(step: str, shared: Mapping[str, Any], **arguments: Any) -> Any:
    """Run a step in this task; its module, and all that it needs, is imported here and not at parsing."""
    function = getattr(importlib.import_module(_TASKS), step)
    return function(get_current_context(), **shared, **arguments)


@task(task_id="discover")
def _discover(shared: dict[str, Any], batches: int, assets: list[str]) -> list[dict[str, int]]:
    """The batches to observe."""
    result: list[dict[str, int]] = _call("discover", shared, batches=batches, assets=assets)
    return result


@task(task_id="observe")
def _observe(shared: dict[str, Any], batch: dict[str, int]) -> dict[str, int]:
    """Observe the tables of a batch and record them."""
    result: dict[str, int] = _call("observe", shared, batch=batch)
    return result


@task(task_id="rank", trigger_rule=_ALL_DONE)
def _rank(shared: dict[str, Any], batches: int, pools: list[str], asking: bool) -> list[dict[str, Any]]:
    """Decide what runs, and return the batches of the first pool."""
    result: list[dict[str, Any]] = _call("rank", shared, batches=batches, pools=pools, asking=asking)
    return result


@task(task_id="batches")
def _batches(
    shared: dict[str, Any], batches: int, pools: list[str], number: int, asking: bool
) -> list[dict[str, Any]]:
    """The batches of another pool."""
    own = {"batches": batches, "pools": pools, "number": number, "asking": asking}
    result: list[dict[str, Any]] = _call("batches_of", shared, **own)
    return result


@task(task_id="approved")
def _approved(shared: dict[str, Any], batches: int, pools: list[str], number: int) -> list[dict[str, Any]]:
    """The batches of the verbs that a person has approved."""
    own = {"batches": batches, "pools": pools, "number": number, "asking": True, "approved": True}
    result: list[dict[str, Any]] = _call("batches_of", shared, **own)
    return result


@task(task_id="apply")
def _apply(shared: dict[str, Any], batch: dict[str, Any]) -> dict[str, int]:
    """Run the verbs of a batch."""
    result: dict[str, int] = _call("apply", shared, batch=batch)
    return result


@task(task_id="report", trigger_rule=_ALL_DONE)
def _report(shared: dict[str, Any]) -> dict[str, Any]:
    """Report the run; fails with the names of the tables that failed."""
    result: dict[str, Any] = _call("report", shared)
    return result
