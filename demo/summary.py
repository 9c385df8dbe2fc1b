"""The state of the tables, computed with the deltalake package only, and the results of all checks.

    python -m demo.summary FACTS.json [--report REPORT.json]

Runs in a separate process, so that no code that wrote the tables is loaded. The exit code is 0 only if every
check held.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo.checks import Check, Evidence, check_all, typical_queries
from demo.checks.corrections import merge_counts
from demo.checks.evidence import task_states
from demo.checks.gate import reasons
from demo.deliveries import MIXED
from demo.layout import read_json, write_json
from demo.table_reader import TableReader, provenance

_FOREIGN = ("airflow", "delta_airflow", "delta_core", "pyspark", "spark_jobs")
_POINTS = (("first_months", "the first run"), ("rolled_back", "rolled back"), ("forward", "forward again"))
_NOT_APPLICABLE = "not rolled back"
_NUMERIC_COLUMNS = ("versions", "files", "bytes", "rows", "")


def main(argv: list[str] | None = None) -> int:
    """Print the summary and the checks; see the docstring of the module."""
    parser = argparse.ArgumentParser(prog="python -m demo.summary")
    parser.add_argument("facts", type=Path)
    parser.add_argument("--report", type=Path, help="write the checks as JSON to this file")
    arguments = parser.parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    evidence = Evidence(facts=read_json(arguments.facts))

    for show in _PARTS:
        try:
            show(console, evidence)
        except Exception as error:
            console.print(f"[red]cannot be shown: {type(error).__name__}: {error}[/red]")
    checks = [*check_all(evidence), _alone()]
    _show_checks(console, checks)
    if arguments.report:
        document = [{"name": check.name, "held": check.held, "detail": check.detail} for check in checks]
        write_json(arguments.report, {"checks": document})
    return 0 if all(check.held for check in checks) else 1


def _alone() -> Check:
    """The check that this process has not loaded deltaward, Spark or Airflow."""
    loaded = sorted(name for name in _FOREIGN if name in sys.modules)
    return Check(
        name="this summary was computed without deltaward, Spark and Airflow",
        held=not loaded,
        detail=", ".join(loaded),
    )


def _show_tables(console: Console, evidence: Evidence) -> None:
    sizes = _table("Tables before and after maintenance", "table", "versions", "files", "", "bytes", "")
    rows = _table("Rows at three versions", "table", *(name for _, name in _POINTS))
    for feed in evidence.profile.feeds:
        table = evidence.tables[feed]
        before = table.size(evidence.version("corrected", feed))
        after = table.size(evidence.version("maintained", feed))
        sizes.add_row(
            feed,
            str(table.latest_version + 1),
            f"{before.files:,}",
            f"{after.files:,}",
            f"{before.bytes:,}",
            f"{after.bytes:,}",
        )
        untouched = evidence.version("maintained", feed)
        versions = [evidence.version(point, feed) for point, _ in _POINTS]
        shown = [_NOT_APPLICABLE if at == untouched else _rows_at(table, at) for at in versions]
        rows.add_row(feed, *shown)
    console.print(sizes, rows)


def _rows_at(table: TableReader, version: int) -> str:
    return f"{table.rows(version).num_rows:,} (v{version})"


def _show_refusals(console: Console, evidence: Evidence) -> None:
    shown = _table("Refused deliveries, of which no row is visible", "delivery", "reason")
    for run in evidence.runs("bad"):
        shown.add_row(run["batch"], run["reason"] or "")
    console.print(shown)


def _show_gate(console: Console, evidence: Evidence) -> None:
    quality = (evidence.facts["quality"].get(MIXED)) or {}
    console.print(
        f"The quality gate on [bold]{MIXED}[/bold]: {quality.get('rows', 0):,} rows delivered, "
        f"{quality.get('published_rows', 0):,} published, {quality.get('quarantined_rows', 0):,} quarantined"
    )
    shown = _table("In quarantine", "rows", "reason")
    for reason, count in reasons(evidence).most_common():
        shown.add_row(f"{count:,}", reason)
    console.print(shown)


def _show_corrections(console: Console, evidence: Evidence) -> None:
    counts = merge_counts(evidence)
    console.print(
        "Late corrections, merged in one commit: "
        + ", ".join(f"{count:,} rows {kind}" for kind, count in counts.items())
        + "\n"
    )


def _show_vacuum(console: Console, evidence: Evidence) -> None:
    title = "What vacuum would delete once the retention is over, and why"
    shown = _table(title, "table", "files", "bytes", "reason")
    for feed, plan in sorted(evidence.facts["vacuum_plans"].items()):
        by_reason: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for file in plan["files"]:
            by_reason[file["reason"]] += 1
            sizes[file["reason"]] += file["size_bytes"]
        for reason, count in by_reason.most_common():
            shown.add_row(feed, f"{count:,}", f"{sizes[reason]:,}", reason)
    console.print(shown)


def _show_skipping(console: Console, evidence: Evidence) -> None:
    shown = _table(
        "Files of flights that a reader skips, by the statistics in the log",
        "query",
        "before clustering",
        "after",
    )
    before, after = (typical_queries(evidence, point) for point in ("corrected", "maintained"))
    for was, now in zip(before, after, strict=True):
        shown.add_row(was.query, was.skipped, now.skipped)
    console.print(shown)


def _show_approvals(console: Console, evidence: Evidence) -> None:
    shown = _table("Rollbacks that needed an approval", "run", "answer", "by", "then")
    for run in (*evidence.runs("rejected"), *evidence.runs("rollback")):
        restored = task_states(run, "restore")
        for answer in run["answers"] or ({"chosen": "no person was asked", "by": None},):
            shown.add_row(
                run["run_id"], answer["chosen"], answer["by"], f"restore {', '.join(map(str, restored))}"
            )
    console.print(shown)


def _show_history(console: Console, evidence: Evidence) -> None:
    for feed in evidence.profile.feeds:
        shown = _table(f"History of {feed}", "version", "when (UTC)", "operation", "run", "task")
        for entry in evidence.tables[feed].history():
            when = datetime.fromtimestamp(entry["timestamp"] / 1000, tz=UTC)
            origin = provenance(entry)
            shown.add_row(
                str(entry["version"]),
                f"{when:%Y-%m-%d %H:%M:%S}",
                str(entry["operation"]),
                str(origin.get("run", "")),
                str(origin.get("task", "")),
            )
        console.print(shown)


def _table(title: str, *columns: str) -> Table:
    """An empty table with a title. Numeric columns are right-aligned."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column in _NUMERIC_COLUMNS else "left")
    return table


def _show_checks(console: Console, checks: list[Check]) -> None:
    console.print("[bold]Checks[/bold]")
    for check in checks:
        mark = "[green]held  [/green]" if check.held else "[red bold]FAILED[/red bold]"
        console.print(f"  {mark} {check.name}" + (f" [dim]({check.detail})[/dim]" if check.detail else ""))
    failed = sum(not check.held for check in checks)
    verdict = f"[red bold]{failed} of {len(checks)} checks failed[/red bold]" if failed else ""
    console.print(verdict or f"[green bold]All {len(checks)} checks held[/green bold]")


_PARTS = (
    _show_tables,
    _show_refusals,
    _show_gate,
    _show_corrections,
    _show_vacuum,
    _show_skipping,
    _show_approvals,
    _show_history,
)

if __name__ == "__main__":
    sys.exit(main())
