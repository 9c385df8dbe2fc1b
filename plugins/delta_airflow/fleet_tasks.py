"""The steps of `fleet_dag`, each run in a task. Between tasks, everything large is below the control root."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.observability.stats import Stats

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.provenance import TaskIdentity
from delta_core.errors import ConfigurationError
from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.control import Control, report_of
from delta_core.fleet.discover import Discovery
from delta_core.fleet.discover import discover as discover_below
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.metrics import gauges
from delta_core.fleet.plan import FleetPlan
from delta_core.fleet.registry import FleetTable, registry_of
from delta_core.fleet.tidy import tidy
from delta_core.jobs.context import JobContext
from delta_core.policies.load import Policies, load_policies

if TYPE_CHECKING:
    from airflow.sdk import Context

TABLES_PER_BATCH: Final = 16
"""A batch of observations has at least so many tables, except the last one."""

TABLES_PER_APPLY: Final = 4
"""A batch of verbs has at least so many tables, except the last one."""


def discover(
    context: Context, *, policies: str, environment: Mapping[str, str], conn_id: str, batches: int
) -> list[dict[str, int]]:
    """Find the tables, store the list below the control root, and return the batches to observe."""
    known, hook, ledger = _surroundings(policies, environment, conn_id)
    found = [
        discover_below(
            hook.table_uri(prefix.uri),
            depth=prefix.depth,
            exclude=prefix.exclude,
            storage_options=hook.storage_options(prefix.uri),
        )
        for prefix in known.model.fleet.prefixes
    ]
    tables = registry_of(known, found).tables
    for table in tables:
        _hook_of(table.policy.connection, hook).table_uri(table.uri)
    uris = [uri for discovery in found for uri in discovery.uris]
    ledger.save(_list_path(context), {"uris": uris})
    count = min(batches, -(-len(tables) // TABLES_PER_BATCH))
    return [{"index": index, "count": count} for index in range(count)]


def observe(
    context: Context,
    *,
    policies: str,
    environment: Mapping[str, str],
    conn_id: str,
    batch: Mapping[str, int],
) -> dict[str, int]:
    """Observe the tables of a batch and append the observations to the ledger."""
    control, hook = _control(context, policies, environment, conn_id)
    tables = control.batch(batch["index"], batch["count"])
    counts = Counter({"tables": 0, "unchanged": 0, "due": 0, "failed": 0})
    for connection, group in _by_connection(tables).items():
        own = _with_options(control, _hook_of(connection, hook), group)
        for item in own.observe(group, run_id=_run_id(context)):
            counts["tables"] += 1
            counts["unchanged"] += item.unchanged
            counts["due"] += bool(item.due)
            counts["failed"] += item.error is not None
    return dict(counts)


def rank(
    context: Context,
    *,
    policies: str,
    environment: Mapping[str, str],
    conn_id: str,
    batches: int,
    pools: list[str],
) -> list[dict[str, Any]]:
    """Rebuild the state, make the plan and store it, and return the batches of the first pool."""
    control, _ = _control(context, policies, environment, conn_id)
    plan_id = _plan_id(context)
    stored = control.ledger.load_plan(plan_id)
    if stored is None:
        rows = control.rebuild(run_id=_run_id(context))
        plan = control.plan(rows, run_id=_run_id(context), plan_id=plan_id)
        control.ledger.save_plan(plan)
    else:
        plan = FleetPlan.from_json(stored)
    return _batches(plan, batches, pools, 0)


def batches_of(
    context: Context,
    *,
    policies: str,
    environment: Mapping[str, str],
    conn_id: str,
    batches: int,
    pools: list[str],
    number: int,
) -> list[dict[str, Any]]:
    """The batches of the run's plan for the pool with this number."""
    _, _, ledger = _surroundings(policies, environment, conn_id)
    return _batches(_stored_plan(ledger, _plan_id(context)), batches, pools, number)


def apply(
    context: Context,
    *,
    policies: str,
    environment: Mapping[str, str],
    conn_id: str,
    batch: Mapping[str, Any],
) -> dict[str, int]:
    """Run the verbs of a batch, and return the number of each outcome. Failures are in the ledger."""
    known, hook, ledger = _surroundings(policies, environment, conn_id)
    plan = _stored_plan(ledger, batch["plan_id"])
    pools = batch["pools"]
    mine = tuple(entry for entry in plan.entries if _pool_of(entry.pool, pools) == batch["pool"])
    part = _with_entries(plan, mine).batch(batch["index"], batch["count"])
    outcomes: Counter[str] = Counter()
    for connection in dict.fromkeys(entry.connection for entry in part.entries):
        own = _hook_of(connection, hook)
        entries = tuple(entry for entry in part.entries if entry.connection == connection)
        uri = own.table_uri(entries[0].uri)
        application = Application(
            ledger=ledger,
            context=JobContext(storage_options=own.storage_options(uri)),
            provenance=_provenance(context),
            log_url=getattr(context["ti"], "log_url", None),
            approved=bool(context["params"].get("approve")),
            price_per_cpu_hour=known.model.fleet.price_per_cpu_hour,
        )
        outcomes.update(row["outcome"] for row in apply_plan(_with_entries(part, entries), application))
    return dict(outcomes)


def report(
    context: Context, *, policies: str, environment: Mapping[str, str], conn_id: str
) -> dict[str, Any]:
    """The totals of the run. Fails with the names of the tables whose verbs failed.

    Sends each metric of the report to Airflow's stats.
    """
    control, _ = _control(context, policies, environment, conn_id)
    run_id = _run_id(context)
    rows = control.rebuild([])
    stored = control.ledger.load_plan(_plan_id(context))
    if stored is None:
        raise AirflowFailException("The run made no plan, because an earlier task failed.")
    made = report_of(control.ledger, run_id=run_id, deferred=stored["deferred"])
    tidy(control.ledger, keep_days=control.registry.policies.model.fleet.keep_days)
    for name, value in gauges(made).items():
        Stats.gauge(name, value)
    if made.failed:
        failed = ", ".join(sorted({f"{row['name']} ({row['verb']})" for row in made.failed}))
        raise AirflowFailException(f"Tables with a failed verb: {failed}.")
    finished = {(row["uri"], row["verb"]) for row in made.runs}
    approve = bool(context["params"].get("approve"))
    left = [
        entry["name"]
        for entry in stored["entries"]
        if (entry["uri"], entry["verb"]) not in finished and (approve or not entry["needs_approval"])
    ]
    if left:
        raise AirflowFailException(f"Tables that a batch did not reach: {', '.join(sorted(set(left)))}.")
    if unread := sorted(row["name"] for row in rows.values() if row["error_code"] is not None):
        raise AirflowFailException(f"Tables that could not be observed: {', '.join(unread)}.")
    return {"totals": made.totals, "verbs": made.verbs, "deferred": len(made.deferred)}


def _surroundings(
    policies: str, environment: Mapping[str, str], conn_id: str
) -> tuple[Policies, DeltawardHook, Ledger]:
    known = load_policies(policies, environment={**os.environ, **environment})
    root = known.model.fleet.control_root
    if root is None:
        raise ConfigurationError(
            f"The policy file {policies!r} has no fleet.control_root.",
            fix="Set it to a directory that all workers can write, such as s3://bucket/deltaward.",
        )
    hook = DeltawardHook(conn_id)
    uri = hook.table_uri(root)
    return known, hook, Ledger(control_root=uri, storage_options=dict(hook.storage_options(uri)))


def _control(
    context: Context, policies: str, environment: Mapping[str, str], conn_id: str
) -> tuple[Control, DeltawardHook]:
    known, hook, ledger = _surroundings(policies, environment, conn_id)
    listed = ledger.load(_list_path(context)) or {"uris": []}
    discovery = Discovery(uris=tuple(listed["uris"]), too_deep=(), listings=0)
    return Control(registry=registry_of(known, [discovery]), ledger=ledger), hook


def _hook_of(connection: str | None, default: DeltawardHook) -> DeltawardHook:
    return default if connection is None else DeltawardHook(connection)


def _by_connection(tables: Iterable[FleetTable]) -> dict[str | None, list[FleetTable]]:
    groups: dict[str | None, list[FleetTable]] = {}
    for table in tables:
        groups.setdefault(table.policy.connection, []).append(table)
    return groups


def _with_options(control: Control, hook: DeltawardHook, tables: list[FleetTable]) -> Control:
    uri = hook.table_uri(tables[0].uri)
    return Control(
        registry=control.registry, ledger=control.ledger, storage_options=dict(hook.storage_options(uri))
    )


def _stored_plan(ledger: Ledger, plan_id: int) -> FleetPlan:
    stored = ledger.load_plan(plan_id)
    if stored is None:
        raise AirflowFailException(f"The plan {plan_id} is not below the control root any more.")
    return FleetPlan.from_json(stored)


def _batches(plan: FleetPlan, batches: int, pools: list[str], number: int) -> list[dict[str, Any]]:
    pool = pools[number]
    tables = {entry.uri for entry in plan.entries if _pool_of(entry.pool, pools) == pool}
    count = min(batches, -(-len(tables) // TABLES_PER_APPLY))
    return [
        {"plan_id": plan.plan_id, "index": index, "count": count, "pool": pool, "pools": pools}
        for index in range(count)
    ]


def _with_entries(plan: FleetPlan, entries: Any) -> FleetPlan:
    return FleetPlan(
        plan_id=plan.plan_id,
        run_id=plan.run_id,
        created_ms=plan.created_ms,
        entries=tuple(entries),
        deferred=(),
    )


def _pool_of(wanted: str | None, pools: list[str]) -> str:
    return wanted if wanted in pools else pools[0]


def _run_id(context: Context) -> str:
    instance = context["ti"]
    return f"{instance.dag_id}/{instance.run_id}"


def _plan_id(context: Context) -> int:
    """The time at which the run started, in epoch milliseconds: the same for each task and each retry."""
    started = context["dag_run"].start_date
    if started is None:
        raise AirflowFailException("The run has no start date.")
    return round(started.timestamp() * 1000)


def _list_path(context: Context) -> str:
    return f"plans/{_plan_id(context)}-tables.json"


def _provenance(context: Context) -> dict[str, Any]:
    identity = TaskIdentity.of(context)
    return {
        "dag_id": identity.dag_id,
        "task_id": identity.task_id,
        "run_id": identity.run_id,
        "map_index": identity.map_index,
        "try_number": identity.try_number,
    }
