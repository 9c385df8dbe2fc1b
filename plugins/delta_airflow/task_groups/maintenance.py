"""`delta_maintenance`: the maintenance tasks for the tables of a policy file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import task, task_group
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from delta_airflow.operators.checkpoint import DeltaCheckpointOperator
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.plan import DeltaPlanOperator
from delta_airflow.operators.rendered import as_bool, as_rendered_strings
from delta_airflow.operators.verify import DeltaVerifyOperator
from delta_airflow.spark_arguments import SPARK_ARGUMENTS
from delta_core.policies.load import load_policies
from delta_core.policies.resolve import ResolvedPolicy, resolve_all

if TYPE_CHECKING:
    from airflow.sdk import Context

LEASE: Final = "maintenance"
"""The default name of the lease that maintenance jobs hold on a table."""

STEPS: Final = ("plan", "compact", "cluster", "verify", "checkpoint", "vacuum")

_FAILED: Final = frozenset({"failed", "upstream_failed"})

# The DAG's `default_args` may contain Spark arguments, which the runner inline refuses.
_INLINE: Final = {"runner": "inline", **dict.fromkeys(SPARK_ARGUMENTS)}

# A plan as if the retention were over. It lists the files that a vacuum will delete later. It deletes
# nothing, regardless of the policy.
_PREVIEW: Final = {"dry_run": True, "retention_hours": 0, "enforce_retention": False, "force": True}


def delta_maintenance(
    policies: str | os.PathLike[str],
    *,
    environment: Mapping[str, str] | None = None,
    tables: Sequence[str] | str | None = None,
    vacuum_preview: bool | str = False,
    verify: bool = True,
    conn_id: str | None = None,
    lease: str | None = LEASE,
    pool: str | None = None,
    allowed_root_uris: Sequence[str] | str | None = None,
    rewrite: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Any:
    """Tasks that plan the due maintenance of each table of a policy file, run it, and verify its commits.

    One task resolves the policies. A group of tasks is mapped over the tables: plan, compact, cluster,
    verify, checkpoint, vacuum. A last task reports the outcome for each table, and fails if a step has
    failed. A failing table does not stop the others. Rewritten files are verified before the vacuum, because
    the check compares them with the files that they replaced. Commits of other writers are not verified.

    Call it in a DAG, or within a `TaskGroup` to be able to put the whole before and after other tasks.

    Args:
        policies: the policy file; it is read when the run starts.
        environment: variables that the file may use, in addition to the worker's environment variables.
        tables: names of the tables to maintain; empty for all. May be a template of a list.
        vacuum_preview: True plans vacuums as if the retention were over, and deletes nothing. May be a
            template.
        verify: False leaves out the verification of the commits.
        conn_id: connection of type `deltaward`; None uses that of the DAG's `default_args`, or else
            `deltaward_default`. May be a template.
        lease: name of the lease that each job holds on its table, so that only one of them works on a table
            at a time; None takes no lease.
        pool: the pool of the tasks that work on tables; None uses that of the DAG's `default_args`.
        allowed_root_uris: the locations outside the tables' roots where files of shallow clones may be. Files
            elsewhere are ignored. May be a template of a list.
        rewrite: arguments of the tasks that rewrite files, such as `runner` or Spark arguments.
        arguments: more arguments of every operator, such as `retries`. Spark arguments, here and in the DAG's
            `default_args`, have an effect only on the tasks that rewrite files.

    Returns:
        The last task's result: for each table its name and the return value of each step.
    """
    optional = {"conn_id": conn_id, "pool": pool}
    shared: dict[str, Any] = {
        **{name: value for name, value in arguments.items() if name not in SPARK_ARGUMENTS},
        **{name: value for name, value in optional.items() if value is not None},
        "trigger_rule": "none_failed",
    }

    group_of: dict[str, str] = {}

    @task(task_id="tables")
    def tables_(selected: Any, preview: Any) -> list[dict[str, Any]]:
        """The tables to maintain, each with its resolved policy."""
        return _resolved(Path(policies), {**os.environ, **(environment or {})}, selected, preview)

    @task_group(group_id="maintain")
    def maintain(name: str, table_uri: str, rules: Any, target_bytes: int | None, vacuum: Any) -> None:
        own: dict[str, Any] = {"table_uri": table_uri, "map_index_template": _name_of(known), **shared}
        inline: dict[str, Any] = {**own, **_INLINE}
        reaching: dict[str, Any] = {"allowed_root_uris": allowed_root_uris}
        rewriting: dict[str, Any] = {
            "target_size_bytes": target_bytes,
            "lease": lease,
            **reaching,
            **own,
            **{name: value for name, value in arguments.items() if name in SPARK_ARGUMENTS},
            **(rewrite or {}),
        }
        plan = DeltaPlanOperator(task_id="plan", rules=rules, **reaching, **inline)
        # Airflow renames a second group of the same name in a DAG.
        group_of["tables"] = plan.task_id.removesuffix(".plan")
        due = _Due(plan.task_id)
        compact = DeltaOptimizeOperator(
            task_id="compact", pre_execute=due.only_if("optimize", unless="cluster"), **rewriting
        )
        cluster = DeltaOptimizeOperator(
            task_id="cluster",
            z_order_by=_z_order_of(plan.task_id),
            pre_execute=due.only_if("cluster"),
            **rewriting,
        )
        checkpoint = DeltaCheckpointOperator(
            task_id="checkpoint", pre_execute=due.only_if("checkpoint"), lease=lease, **inline
        )
        removed = DeltaJobOperator(
            task_id="vacuum",
            kind="vacuum",
            job_parameters=vacuum,
            pre_execute=due.only_if_or_previewed("vacuum"),
            lease=lease,
            **inline,
        )
        plan >> compact >> cluster
        if verify:
            verified = DeltaVerifyOperator(
                task_id="verify",
                commits=[_result_of(compact.task_id), _result_of(cluster.task_id)],
                **reaching,
                **inline,
            )
            cluster >> verified >> checkpoint
        else:
            cluster >> checkpoint
        checkpoint >> removed

    @task(trigger_rule="all_done")
    def record(tables: list[dict[str, Any]], ti: Any = None) -> list[dict[str, Any]]:
        """The outcome of each table. Fails with the names of the tables that have a failed step."""
        if tables is None:
            raise AirflowFailException("The tables are not known because the upstream task has failed.")
        return _recorded(tables, ti, group=group_of["tables"])

    known: Any = tables_(tables if tables is not None else [], vacuum_preview)
    recorded = record(known)
    maintain.expand_kwargs(known) >> recorded
    return recorded


class _Due:
    """The decisions that the plan task made, checked before each task runs."""

    def __init__(self, plan_id: str) -> None:
        self._plan_id = plan_id

    def only_if(self, verb: str, *, unless: str | None = None) -> Callable[[Context], None]:
        """Skip a task unless the verb is due according to the plan. The skip gives the reason.

        Args:
            verb: the verb of the task.
            unless: a verb that includes the work of this one. If it is due, the task is skipped, too.
        """

        def check(context: Context) -> None:
            decisions = self._decisions(context)
            if not decisions[verb]["due"]:
                raise AirflowSkipException(decisions[verb]["reason"])
            if unless and decisions[unless]["due"]:
                raise AirflowSkipException(f"Included in {unless}: {decisions[unless]['reason']}")

        return check

    def only_if_or_previewed(self, verb: str) -> Callable[[Context], None]:
        """The same as `only_if`, but a preview always runs, because the run requests it."""
        only_if = self.only_if(verb)

        def check(context: Context) -> None:
            operator: Any = context["task"]
            if not _PREVIEW.items() <= operator.job_parameters.items():
                only_if(context)

        return check

    def _decisions(self, context: Context) -> dict[str, dict[str, Any]]:
        instance = context["ti"]
        plan = instance.xcom_pull(task_ids=self._plan_id, map_indexes=instance.map_index)
        return {decision["verb"]: decision for decision in plan["output"]["decisions"]}


def _resolved(
    path: Path, environment: Mapping[str, str], selected: Any, preview: Any
) -> list[dict[str, Any]]:
    policies = resolve_all(load_policies(path, environment=environment))
    names = {policy.name for policy in policies}
    chosen = set(as_rendered_strings("tables", selected)) or names
    if unknown := sorted(chosen - names):
        raise AirflowFailException(
            f"The policy file {path} does not contain these tables: {', '.join(unknown)}."
        )
    vacuum_changes = _PREVIEW if as_bool("vacuum_preview", preview) else {}
    return [_maintained(policy, vacuum_changes) for policy in policies if policy.name in chosen]


def _maintained(policy: ResolvedPolicy, preview: Mapping[str, Any]) -> dict[str, Any]:
    return {
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


def _recorded(tables: list[dict[str, Any]], ti: Any, *, group: str) -> list[dict[str, Any]]:
    states_by_run = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id])
    states: Mapping[str, str] = states_by_run.get(ti.run_id, {})
    failed = []
    for index, table in enumerate(tables):
        table |= {step: ti.xcom_pull(task_ids=f"{group}.{step}", map_indexes=index) for step in STEPS}
        if failures := [step for step in STEPS if str(states.get(f"{group}.{step}_{index}")) in _FAILED]:
            failed.append(f"{table['name']} ({failures[0]})")
    if failed:
        raise AirflowFailException(f"Tables with a failed step: {', '.join(failed)}.")
    return tables


def _name_of(known: Any) -> str:
    """A template for the name of the table of a mapped task."""
    return f"{{{{ ti.xcom_pull(task_ids='{known.operator.task_id}')[ti.map_index]['name'] }}}}"


def _result_of(task_id: str) -> str:
    """A template for the result of a task of the same table, as JSON; null if the task was skipped."""
    return f"{{{{ ti.xcom_pull(task_ids='{task_id}', map_indexes=ti.map_index) | tojson }}}}"


def _z_order_of(plan_id: str) -> str:
    """A template for the Z-order columns in the plan. They are empty for a table with clustering columns."""
    plan = f"ti.xcom_pull(task_ids='{plan_id}', map_indexes=ti.map_index)['output']['decisions']"
    clusters = f"({plan} | selectattr('verb', 'equalto', 'cluster') | first)"
    return f"{{{{ {clusters}.params.z_order_by | default([]) | tojson }}}}"
