"""Commands for a fleet: `deltaward fleet discover status show plan apply report lint explain ...`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
import yaml

from delta_core.cli.console import BAD_INPUT, SOME, UNKNOWN, print_json, print_line, print_note
from delta_core.cli.files import require_writable, write_atomically
from delta_core.cli.fleet_files import (
    DEFAULT_POLICIES,
    PolicyFile,
    control_of,
    ledger_of,
    policies_of,
    store_options,
)
from delta_core.cli.fleet_spark import SparkDriver, require_spark
from delta_core.cli.options import AsJson, OptionFile
from delta_core.cli.tables import print_facts, print_table
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import ConfigurationError
from delta_core.fleet.apply import Application
from delta_core.fleet.control import HISTORY_DAYS, Control, report_of
from delta_core.fleet.discover import discover
from delta_core.fleet.ledger import Row, days_ago, instant
from delta_core.fleet.lint import ERROR, lint
from delta_core.fleet.metrics import gauges, prometheus_text
from delta_core.fleet.plan import FleetPlan
from delta_core.fleet.registry import policy_document
from delta_core.fleet.report_html import report_html
from delta_core.fleet.tidy import tidy
from delta_core.fleet.workers import MOST_JOBS, apply_in_processes
from delta_core.jobs.context import JobContext
from delta_core.policies.fleet_model import BudgetPolicy

fleet = typer.Typer(
    name="fleet",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Find tables, observe them, rank what is due, and maintain them under a budget.",
)

Table = Annotated[str, typer.Argument(metavar="TABLE", help="Name or URI of a table of the fleet.")]
IgnoreWindows = Annotated[bool, typer.Option("--window-override", help="Plan as if every window were open.")]
Budget = Annotated[
    str | None, typer.Option(help="Bytes that a run may rewrite, such as 10gb. By default the policy's.")
]
CpuSeconds = Annotated[
    float | None, typer.Option(help="CPU seconds that a run may use. By default the policy's.", min=0.001)
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", help="Number of processes, each for a part of the tables.", min=1, max=MOST_JOBS),
]

_STATUS_COLUMNS = (
    "name",
    "uri",
    "score",
    "reasons",
    "due",
    "observed_at",
    "owner",
    "num_files",
    "total_bytes",
    "failures",
    "circuit_open",
    "error_code",
    "error",
)
_HOUR_SECONDS = 3600


@fleet.command("discover")
def discover_(
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="Path or URI below which tables are.")],
    depth: Annotated[int, typer.Option(help="How many directories below the prefix a table may be.")] = 4,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Skip paths below the prefix that match this shell pattern.")
    ] = None,
    write: Annotated[
        Path, typer.Option("--write", help="The policy file to write. An existing file is kept.")
    ] = DEFAULT_POLICIES,
    options: OptionFile = None,
    as_json: AsJson = False,
) -> None:
    """Find the tables below a prefix, and write a policy file that finds them again."""
    excluded = tuple(exclude or ())
    place = prefix if "://" in prefix else str(Path(prefix).resolve())
    found = discover(place, depth=depth, exclude=excluded, storage_options=store_options(options))
    if as_json:
        print_json({"tables": found.uris, "too_deep": found.too_deep, "listings": found.listings})
    else:
        for uri in found.uris:
            print_line(uri)
    for path in found.too_deep:
        print_note(f"warning: {path or place} has directories deeper than --depth {depth}.")
    print_note(f"{len(found.uris)} tables, {found.listings} listings")
    if write.exists():
        print_note(f"{write} exists already and was kept.")
        return
    document = policy_document(found, prefix=place, depth=depth, exclude=excluded)
    write_atomically(write, yaml.safe_dump(document, sort_keys=False))
    print_note(f"wrote {write}; next: deltaward fleet status")


@fleet.command()
def status(
    policies: PolicyFile = None,
    worst: Annotated[int, typer.Option(help="Show this many tables, the worst first.", min=1)] = 20,
    observe: Annotated[
        bool | None,
        typer.Option(
            "--observe/--no-observe",
            help="Observe the tables first. By default only when the ledger is older than --max-age-hours.",
        ),
    ] = None,
    max_age_hours: Annotated[float, typer.Option(help="See --observe.", min=0)] = 24.0,
    jobs: Jobs = 1,
    fail_below: Annotated[
        float | None, typer.Option(help="End with exit code 10 when a table has a lower score.")
    ] = None,
    options: OptionFile = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all tables as CSV.")] = False,
) -> None:
    """Show the worst tables with their scores and reasons, from the ledger."""
    ledger = ledger_of(policies_of(policies), options)
    rows = [] if observe else ledger.fleet_list(_STATUS_COLUMNS)
    oldest = min((row["observed_at"].timestamp() for row in rows), default=0.0)
    if observe or (observe is None and SYSTEM_CLOCK.now_ms() / 1000 - oldest > max_age_hours * _HOUR_SECONDS):
        rows = list(control_of(policies, options).refresh(run_id=_run_id(), jobs=jobs).values())
    ordered = sorted(rows, key=_worst_first)
    if as_csv:
        _print_csv(ordered)
    elif as_json:
        print_json([_shown(row) for row in ordered[:worst]])
    else:
        _print_status(ordered, worst)
    if fail_below is not None and any(_score(row) < fail_below for row in ordered):
        raise typer.Exit(SOME)


@fleet.command()
def show(
    table: Table, policies: PolicyFile = None, options: OptionFile = None, as_json: AsJson = False
) -> None:
    """Show what the ledger knows about one table: facts, sub-scores, decisions, runs."""
    control = control_of(policies, options)
    known = control.registry.table(table)
    row = control.rows.get(known.uri)
    if row is None:
        row = control.rebuild_one(known, run_id=_run_id())
    since = days_ago(control.clock.now_ms(), HISTORY_DAYS)
    runs = [run for run in control.ledger.runs(since=since) if run["uri"] == known.uri][-20:]
    if as_json:
        print_json({"table": row, "runs": runs})
        return
    hidden = ("sub_scores", "decisions", "compaction", "seen", "reasons", "commits_by_hour_of_week")
    print_facts((name, value) for name, value in row.items() if name not in hidden)
    parts = sorted(row.get("sub_scores") or (), key=lambda part: -part["lost"])
    print_table(
        ("part of the score", "value", "points lost", "reason"),
        ((part["name"], part["value"], part["lost"], part["reason"]) for part in parts),
    )
    decisions = json.loads(row.get("decisions") or "[]")
    print_table(
        ("verb", "due", "urgency", "reason"),
        (
            (item["verb"], "yes" if item["due"] else "no", item["urgency"], item["reason"])
            for item in decisions
        ),
    )
    print_table(
        ("run", "verb", "outcome", "files", "CPU s", "error"),
        (
            (
                f"{run['started_at']:%Y-%m-%d %H:%M}",
                run["verb"],
                run["outcome"],
                run["actual_files"],
                run["cpu_seconds"],
                run["error"] or "",
            )
            for run in runs
        ),
    )


@fleet.command()
def plan(
    policies: PolicyFile = None,
    budget: Budget = None,
    cpu_seconds: CpuSeconds = None,
    save: Annotated[Path | None, typer.Option(help="Write the plan to this JSON file.")] = None,
    window_override: IgnoreWindows = False,
    jobs: Jobs = 1,
    options: OptionFile = None,
    as_json: AsJson = False,
) -> None:
    """Observe the tables, and rank what is due by gain and cost under the budget. Changes no table."""
    control = control_of(policies, options)
    if save is not None:
        require_writable(save)
    made = _plan(control, budget, cpu_seconds, window_override, jobs)
    if save is not None:
        write_atomically(save, json.dumps(made.to_json(), indent=1) + "\n")
    if as_json:
        print_json(made.to_json())
        return
    _print_plan(made)


@fleet.command()
def apply(
    policies: PolicyFile = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", help="Run this plan. A plan that was stopped is continued.")
    ] = None,
    budget: Budget = None,
    cpu_seconds: CpuSeconds = None,
    window_override: IgnoreWindows = False,
    approve: Annotated[
        bool, typer.Option("--approve", help="Also run the verbs that need an approval.")
    ] = False,
    jobs: Jobs = 1,
    remote: Annotated[
        str | None, typer.Option(help="Spark Connect URL, sc://host:port, for tables with engine: spark.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master, such as local[2], for tables with engine: spark.")
    ] = None,
    options: OptionFile = None,
    as_json: AsJson = False,
) -> None:
    """Run what is due, each table under its lease. Exit code 10 when some verbs failed."""
    control = control_of(policies, options)
    if plan_file is not None:
        made = FleetPlan.from_json(_json_of(plan_file))
    else:
        made = _plan(control, budget, cpu_seconds, window_override, jobs)
    require_spark(made.entries)
    application = Application(
        ledger=control.ledger,
        context=JobContext(storage_options=control.storage_options),
        approved=approve,
        run=SparkDriver(remote=remote, master=master).run,
        price_per_cpu_hour=control.registry.policies.model.fleet.price_per_cpu_hour,
    )
    rows = []
    for row in apply_in_processes(made, application, jobs=jobs):
        rows.append(row)
        if not as_json:
            print_line(f"{row['name']}: {row['verb']} {row['outcome']}. {row.get('error') or row['reason']}")
    control_of(policies, options).refresh(run_id=made.run_id, jobs=jobs)
    tidy(control.ledger, keep_days=control.registry.policies.model.fleet.keep_days)
    if as_json:
        print_json({"plan_id": made.plan_id, "run_id": made.run_id, "rows": rows})
    held = sum(entry.needs_approval for entry in made.entries)
    if held and not approve:
        print_note(f"{held} verbs need an approval: pass --approve.")
    print_note(f"{len(rows)} verbs, {len(made.deferred)} deferred")
    outcomes = {row["outcome"] for row in rows}
    if "unknown" in outcomes:
        raise typer.Exit(UNKNOWN)
    if "failed" in outcomes:
        raise typer.Exit(SOME)


@fleet.command()
def report(
    policies: PolicyFile = None,
    run_id: Annotated[
        str | None, typer.Option("--run", help="Also show this run. By default the newest run.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write one HTML file.")] = None,
    metrics_file: Annotated[
        Path | None, typer.Option("--metrics-file", help="Write metrics in Prometheus' text format.")
    ] = None,
    options: OptionFile = None,
    as_json: AsJson = False,
) -> None:
    """Report on the fleet and its newest run, from the ledger: text, JSON, HTML or metrics."""
    for path in (html, metrics_file):
        if path is not None:
            require_writable(path)
    ledger = ledger_of(policies_of(policies), options)
    made = report_of(ledger, run_id=run_id)
    if html is not None:
        write_atomically(html, report_html(made))
    if metrics_file is not None:
        write_atomically(metrics_file, prometheus_text(gauges(made)))
    if as_json:
        print_json(made.to_json())
    elif html is None and metrics_file is None:
        for line in made.lines():
            print_line(line)


@fleet.command("lint")
def lint_(
    policies: PolicyFile = None,
    open_tables: Annotated[
        bool, typer.Option("--open/--no-open", help="Also open each table, to find missing ones and pins.")
    ] = True,
    options: OptionFile = None,
    as_json: AsJson = False,
) -> None:
    """Find problems of the policy file. Exit code 2 when there is an error among them."""
    control = control_of(policies, options)
    problems = lint(control.registry, storage_options=control.storage_options, opening=open_tables)
    if as_json:
        print_json([problem.to_json() for problem in problems])
    else:
        for problem in problems:
            print_line(f"{problem.severity}: {problem.rule} at {problem.at}: {problem.message}")
    print_note(f"{len(problems)} problems in {len(control.registry.tables)} tables")
    if any(problem.severity == ERROR for problem in problems):
        raise typer.Exit(BAD_INPUT)


@fleet.command()
def explain(
    table: Table,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="A setting, such as compaction.min_small_files.")
    ] = None,
    policies: PolicyFile = None,
    options: OptionFile = None,
    as_json: AsJson = False,
) -> None:
    """Show the settings of a table, and which level of the policy file set each."""
    resolved = control_of(policies, options).registry.table(table).resolved
    settings = dict(_flat(resolved.policy.model_dump(mode="json")))
    chosen = {name: value for name, value in settings.items() if key in (None, name)}
    if not chosen:
        raise ConfigurationError(
            f"There is no setting {key!r}.", fix=f"Choose one of {', '.join(sorted(settings))}."
        )
    found = [
        {"key": name, "value": value, "source": resolved.sources.get(name, "built in")}
        for name, value in chosen.items()
    ]
    if as_json:
        print_json(found)
    else:
        print_table(
            ("setting", "value", "set by"),
            ((item["key"], str(item["value"]), item["source"]) for item in found),
        )


@fleet.command()
def unmanaged(policies: PolicyFile = None, options: OptionFile = None, as_json: AsJson = False) -> None:
    """List the tables that were discovered and to which only the defaults apply."""
    found = [table.uri for table in control_of(policies, options).registry.unmanaged]
    if as_json:
        print_json(found)
        return
    for uri in found:
        print_line(uri)
    print_note(f"{len(found)} unmanaged tables")


@fleet.command()
def circuit(
    table: Table,
    close: Annotated[
        bool, typer.Option("--close", help="Forget the failures, so that verbs run again.")
    ] = False,
    policies: PolicyFile = None,
    options: OptionFile = None,
) -> None:
    """Show whether the circuit of a table is open after failures, and close it."""
    control = control_of(policies, options)
    known = control.registry.table(table)
    if close:
        control.close_circuit(known)
        print_line(f"{known.name}: the circuit is closed.")
        return
    history = control.history.get(known.uri)
    failures = 0 if history is None else history.failures
    state = "open" if failures >= known.policy.max_failures else "closed"
    print_line(f"{known.name}: {state}, {failures} failures in a row, open from {known.policy.max_failures}")
    if history is not None and history.last_error:
        print_line(history.last_error)


def _plan(
    control: Control, budget: str | None, cpu_seconds: float | None, ignore_windows: bool, jobs: int
) -> FleetPlan:
    run_id = _run_id()
    rows = control.refresh(run_id=run_id, jobs=jobs)
    return control.plan(
        rows, run_id=run_id, budget=_budget(control, budget, cpu_seconds), ignore_windows=ignore_windows
    )


def _budget(control: Control, budget: str | None, cpu_seconds: float | None) -> BudgetPolicy:

    known: BudgetPolicy = control.registry.policies.model.fleet.budget
    given = {"bytes": budget, "cpu_seconds": cpu_seconds}
    changes = {name: value for name, value in given.items() if value is not None}
    try:
        return BudgetPolicy.model_validate({**known.model_dump(), **changes})
    except ValueError as error:
        raise ConfigurationError(
            f"{budget!r} is not a size.", fix="Write a size such as 10gb or 1048576."
        ) from error


def _json_of(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The plan {str(path)!r} cannot be read.", cause=f"{error}.", fix="Check the path."
        ) from error


def _run_id() -> str:
    return f"cli-{instant(SYSTEM_CLOCK.now_ms()):%Y%m%dT%H%M%SZ}-{uuid4().hex[:6]}"


def _flat(document: Any, prefix: str = "") -> Any:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _score(row: Row) -> float:
    return -1.0 if row.get("score") is None or row.get("error_code") is not None else float(row["score"])


def _worst_first(row: Row) -> tuple[float, str]:
    return (_score(row), row["name"])


def _shown(row: Row) -> dict[str, Any]:
    return {name: row.get(name) for name in _STATUS_COLUMNS}


def _print_status(rows: list[Row], worst: int) -> None:
    sick = sum(bool(row.get("due")) or row.get("error_code") is not None for row in rows)
    print_table(
        ("score", "table", "due", "why"),
        (
            (
                "?" if _score(row) < 0 else f"{row['score']:.1f}",
                row["name"],
                ", ".join(row.get("due") or ()),
                _why(row),
            )
            for row in rows[:worst]
        ),
    )
    print_note(f"{len(rows)} tables, {sick} with something due")


def _why(row: Row) -> str:
    reasons = [row["error"]] if row.get("error") else (row.get("reasons") or [])[:2]
    if row["circuit_open"]:
        reasons = [f"the circuit is open after {row['failures']} failures", *reasons]
    return "; ".join(reasons)


def _print_csv(rows: list[Row]) -> None:

    writer = csv.writer(typer.get_text_stream("stdout"), lineterminator="\n")
    writer.writerow(_STATUS_COLUMNS)
    for row in rows:
        values = [row.get(name) for name in _STATUS_COLUMNS]
        writer.writerow("; ".join(value) if isinstance(value, list) else value for value in values)


def _print_plan(made: FleetPlan) -> None:
    print_table(
        ("table", "verb", "gain a day", "CPU s", "files", "why"),
        (
            (
                entry.name,
                f"{entry.verb} (needs approval)" if entry.needs_approval else entry.verb,
                round(entry.gain),
                entry.cpu_seconds,
                entry.files,
                entry.reason,
            )
            for entry in made.entries
        ),
        title=f"{len(made.entries)} verbs",
    )
    if made.deferred:
        print_table(
            ("table", "verb", "deferred because"),
            ((item.name, item.verb, item.reason) for item in made.deferred),
        )
