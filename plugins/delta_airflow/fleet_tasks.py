"""The steps of `fleet_dag`, each run in a task. Between tasks, everything large is below the control root."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.observability.stats import Stats

from delta_airflow.fleet_engine import job_runner
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.approval import approver_of
from delta_airflow.operators.provenance import TaskIdentity
from delta_core.errors import ConfigurationError
from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.control import Control, report_of
from delta_core.fleet.discover import Discovery
from delta_core.fleet.discover import discover as discover_below
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.metrics import gauges
from delta_core.fleet.plan import Entry, FleetPlan
from delta_core.fleet.registry import FleetTable, registry_of
from delta_core.fleet.tidy import tidy
from delta_core.jobs.context import JobContext
from delta_core.maintenance.messages import counted, size
from delta_core.policies.load import Policies, load_policies
from delta_core.storage import uri_scheme

if TYPE_CHECKING:
    from airflow.sdk import Context

TABLES_PER_BATCH: Final = 16
"""A batch of observations has at least so many tables, except the last one."""

TABLES_PER_APPLY: Final = 4
"""A batch of verbs has at least so many tables, except the last one."""

APPROVE: Final = "approve"
"""The task of the approval, and the run's parameter that makes it unnecessary."""

_MOST_LISTED: Final = 50


def discover(
    context: Context,
    *,
    policies: str,
    environment: Mapping[str, str],
    conn_id: str,
    batches: int,
    assets: Iterable[str],
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
    named = list(assets)
    tables = registry_of(known, found, assets=named).tables
    for connection, group in _by_connection(tables).items():
        _options_of(_hook_of(connection, hook), [table.uri for table in group])
    uris = [uri for discovery in found for uri in discovery.uris]
    ledger.save(_list_path(context), {"uris": uris, "assets": named})
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
    asking: bool,
) -> list[dict[str, Any]]:
    """Rebuild the state, make the plan and store it, and return the batches of the first pool.

    With `asking`, the verbs that need an approval are left to the batches behind the approval.
    """
    control, _ = _control(context, policies, environment, conn_id)
    plan_id = _plan_id(context)
    stored = control.ledger.load_plan(plan_id)
    if stored is None:
        rows = control.rebuild(run_id=_run_id(context))
        plan = control.plan(rows, run_id=_run_id(context), plan_id=plan_id)
        control.ledger.save_plan(plan)
    else:
        plan = FleetPlan.from_json(stored)
    return _batches(plan, batches, pools, 0, asked=_asked(context, asking))


def batches_of(
    context: Context,
    *,
    policies: str,
    environment: Mapping[str, str],
    conn_id: str,
    batches: int,
    pools: list[str],
    number: int,
    asking: bool,
    approved: bool = False,
) -> list[dict[str, Any]]:
    """The batches of the run's plan for the pool with this number: of approved verbs, or of the others.

    Raises:
        AirflowFailException: the verbs count as approved, and no person approved them.
    """
    if approved:
        _approver(context)
    _, _, ledger = _surroundings(policies, environment, conn_id)
    plan = _stored_plan(ledger, _plan_id(context))
    return _batches(plan, batches, pools, number, asked=True if approved else _asked(context, asking))


def question(
    context: Context, *, policies: str, environment: Mapping[str, str], conn_id: str
) -> tuple[str, str] | None:
    """The question about the verbs of the plan that need an approval, as one line and Markdown.

    Returns None without such verbs, and when the run's parameters approve them.
    """
    if bool(context["params"].get(APPROVE)):
        return None
    _, _, ledger = _surroundings(policies, environment, conn_id)
    entries = [entry for entry in _stored_plan(ledger, _plan_id(context)).entries if entry.needs_approval]
    if not entries:
        return None
    lines = ["| table | verb | files | bytes | CPU s | why |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [_question_line(entry) for entry in entries[:_MOST_LISTED]]
    if len(entries) > _MOST_LISTED:
        lines.append(f"\nAnd {len(entries) - _MOST_LISTED} more. The whole plan is below the control root.")
    total = size(sum(entry.size_bytes for entry in entries))
    tables = counted(len({entry.uri for entry in entries}), "table")
    return f"Run {counted(len(entries), 'verb')} on {tables} ({total})?", "\n".join(lines)


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
    pools, asked = batch["pools"], batch["asked"]
    approver = _approver(context) if asked else None
    mine = _entries(plan, pools, batch["pool"], asked)
    part = _with_entries(plan, mine).batch(batch["index"], batch["count"])
    outcomes: Counter[str] = Counter()
    for connection in dict.fromkeys(entry.connection for entry in part.entries):
        own = _hook_of(connection, hook)
        entries = tuple(entry for entry in part.entries if entry.connection == connection)
        options = _options_of(own, [entry.uri for entry in entries])
        application = Application(
            ledger=ledger,
            context=JobContext(storage_options=options),
            provenance=_provenance(context) | ({} if approver is None else {"approver": approver}),
            log_url=getattr(context["ti"], "log_url", None),
            approved=asked is True or bool(context["params"].get(APPROVE)),
            run=job_runner(own, TaskIdentity.of(context)),
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
    approve = bool(context["params"].get(APPROVE)) or _answered(context)
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
    listed = ledger.load(_list_path(context)) or {"uris": [], "assets": []}
    discovery = Discovery(uris=tuple(listed["uris"]), too_deep=(), listings=0)
    registry = registry_of(known, [discovery], assets=listed["assets"])
    return Control(registry=registry, ledger=ledger), hook


def _hook_of(connection: str | None, default: DeltawardHook) -> DeltawardHook:
    return default if connection is None else DeltawardHook(connection)


def _by_connection(tables: Iterable[FleetTable]) -> dict[str | None, list[FleetTable]]:
    groups: dict[str | None, list[FleetTable]] = {}
    for table in tables:
        groups.setdefault(table.policy.connection, []).append(table)
    return groups


def _with_options(control: Control, hook: DeltawardHook, tables: list[FleetTable]) -> Control:
    options = _options_of(hook, [table.uri for table in tables])
    return Control(registry=control.registry, ledger=control.ledger, storage_options=options)


def _options_of(hook: DeltawardHook, uris: list[str]) -> dict[str, str]:
    """The storage options for the tables of a connection, after a check that it may be used for each."""
    checked = [hook.table_uri(uri) for uri in uris]
    remote = next((uri for uri in checked if uri_scheme(uri) not in (None, "file")), None)
    return {} if remote is None else dict(hook.storage_options(remote))


def _stored_plan(ledger: Ledger, plan_id: int) -> FleetPlan:
    stored = ledger.load_plan(plan_id)
    if stored is None:
        raise AirflowFailException(f"The plan {plan_id} is not below the control root any more.")
    return FleetPlan.from_json(stored)


def _batches(
    plan: FleetPlan, batches: int, pools: list[str], number: int, *, asked: bool | None
) -> list[dict[str, Any]]:
    pool = pools[number]
    tables = {entry.uri for entry in _entries(plan, pools, pool, asked)}
    count = min(batches, -(-len(tables) // TABLES_PER_APPLY))
    shared = {"plan_id": plan.plan_id, "count": count, "pool": pool, "pools": pools, "asked": asked}
    return [{**shared, "index": index} for index in range(count)]


def _entries(plan: FleetPlan, pools: list[str], pool: str, asked: bool | None) -> tuple[Entry, ...]:
    """The verbs of a pool: those that a person is asked about, the others, or with None all."""
    return tuple(
        entry
        for entry in plan.entries
        if _pool_of(entry.pool, pools) == pool and (asked is None or entry.needs_approval == asked)
    )


def _asked(context: Context, asking: bool) -> bool | None:
    """The verbs of the batches that wait for no person: see `_entries`."""
    return False if asking and not context["params"].get(APPROVE) else None


def _answer(context: Context) -> Any:
    return context["ti"].xcom_pull(task_ids=APPROVE, key="answer")


def _answered(context: Context) -> bool:
    answer = _answer(context)
    return isinstance(answer, Mapping) and answer.get("chosen_options") == ["Approve"]


def _approver(context: Context) -> str:
    return approver_of(_answer(context))


def _question_line(entry: Entry) -> str:
    cells = (
        entry.name.replace("|", "\\|").replace("\n", " "),
        entry.verb,
        entry.files,
        size(entry.size_bytes),
        round(entry.cpu_seconds, 2),
        entry.reason.replace("|", "\\|"),
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


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
