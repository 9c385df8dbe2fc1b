"""`fleet_dag`: a DAG that maintains all tables of a policy file, with a number of tasks that does not grow.

Parsing such a DAG reads neither the policy file nor a store. The tasks read the file when they run.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pendulum
from airflow.sdk import DAG, Param, get_current_context, task

from delta_airflow.dag_defaults import CONN_ID, connection_param, default_args
from delta_core.errors import ConfigurationError

MAX_BATCHES: Final = 32
"""The most batches of one step, for each pool."""

_TASKS: Final = "delta_airflow.fleet_tasks"
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
    **arguments: Any,
) -> DAG:
    """A DAG: `discover >> observe >> rank >> apply >> report`, with `observe` and `apply` in batches.

    `discover` finds the tables. Each batch of `observe` records its tables in the ledger. `rank` decides what
    runs under the budget and in open windows. Each batch of `apply` runs its tables one after the other, each
    under its lease. A batch that was killed continues where it stopped when it is retried. `report` fails the
    run with the names of the tables that failed; a table that failed stops no other.

    A run has at most `2 + batches + len(pools) * (1 + batches)` task instances for any number of tables.

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
    dag = DAG(
        dag_id=dag_id,
        schedule=schedule,
        **{
            "start_date": pendulum.datetime(2026, 1, 1, tz="UTC"),
            "catchup": False,
            "max_active_runs": 1,
            "default_args": default_args(),
            "description": "Maintain all tables of a policy file under a budget",
            "doc_md": __doc__,
            "tags": ["deltaward", "fleet"],
            "params": {
                "approve": Param(False, type="boolean", description="Also run verbs that need an approval"),
                "connection": connection_param(),
            },
            **arguments,
        },
    )
    with dag:
        found = _discover(shared, batches)
        observed = _observe.partial(shared=shared).expand(batch=found)
        ranked: Any = _rank(shared, batches, list(pools))
        reported: Any = _report(shared)
        observed >> ranked
        for number, pool in enumerate(pools):
            # A task can only be mapped over the whole result of another one.
            part: Any = ranked
            if number:
                part = _batches.override(task_id=f"batches_{number}")(shared, batches, list(pools), number)
                ranked >> part
            own = _apply.override(task_id=f"apply_{number}" if number else "apply", pool=pool)
            own.partial(shared=shared).expand(batch=part) >> reported
    return dag


def _call(step: str, shared: Mapping[str, Any], **arguments: Any) -> Any:
    """Run a step in this task; its module, and all that it needs, is imported here and not at parsing."""
    function = getattr(importlib.import_module(_TASKS), step)
    return function(get_current_context(), **shared, **arguments)


@task(task_id="discover")
def _discover(shared: dict[str, Any], batches: int) -> list[dict[str, int]]:
    """The batches to observe."""
    result: list[dict[str, int]] = _call("discover", shared, batches=batches)
    return result


@task(task_id="observe")
def _observe(shared: dict[str, Any], batch: dict[str, int]) -> dict[str, int]:
    """Observe the tables of a batch and record them."""
    result: dict[str, int] = _call("observe", shared, batch=batch)
    return result


@task(task_id="rank", trigger_rule=_ALL_DONE)
def _rank(shared: dict[str, Any], batches: int, pools: list[str]) -> list[dict[str, Any]]:
    """Decide what runs, and return the batches of the first pool."""
    result: list[dict[str, Any]] = _call("rank", shared, batches=batches, pools=pools)
    return result


@task(task_id="batches")
def _batches(shared: dict[str, Any], batches: int, pools: list[str], number: int) -> list[dict[str, Any]]:
    """The batches of another pool."""
    result: list[dict[str, Any]] = _call("batches_of", shared, batches=batches, pools=pools, number=number)
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
