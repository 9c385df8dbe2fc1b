"""What became of the tables, computed by the deltalake package alone, and whether every check held.

    python -m demo.summary FACTS.json [--report REPORT.json]

Runs as a process of its own, so that nothing of what made the tables is in it. Exit code 0 only if every
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

from demo.checks import Check, Evidence, check_all, typical_query
from demo.layout import read_json, write_json
from demo.table_reader import TableReader, provenance

_FOREIGN = ("airflow", "delta_airflow", "delta_core", "pyspark", "spark_jobs")
_POINTS = (("first_months", "the first run"), ("rolled_back", "rolled back"), ("forward", "forward again"))


def main(argv: list[str] | None = None) -> int:
    """Print the summary and the checks; see the module."""
    parser = argparse.ArgumentParser(prog="python -m demo.summary")
    parser.add_argument("facts", type=Path)
    parser.add_argument("--report", type=Path, help="where the checks go as JSON")
    arguments = parser.parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    evidence = Evidence(facts=read_json(arguments.facts))

    for show in (_show_tables, _show_vacuum, _show_skipping, _show_history):
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
    """That this process is what it says it is."""
    loaded = sorted(name for name in _FOREIGN if name in sys.modules)
    return Check(
        name="this summary was computed without deltaward, Spark and Airflow",
        held=not loaded,
        detail=", ".join(loaded),
    )


def _show_tables(console: Console, evidence: Evidence) -> None:
    sizes = Table(title="Tables", title_justify="left")
    for column in ("table", "versions", "files before", "after", "bytes before", "after"):
        sizes.add_column(column, justify="left" if column == "table" else "right")
    rows = Table(title="Rows at three versions", title_justify="left")
    rows.add_column("table")
    for _, name in _POINTS:
        rows.add_column(name, justify="right")
    for feed in evidence.profile.feeds:
        table = evidence.tables[feed]
        before = table.size(evidence.version("after_bad", feed))
        after = table.size(evidence.version("maintained", feed))
        sizes.add_row(
            feed,
            str(table.latest_version + 1),
            f"{before.files:,}",
            f"{after.files:,}",
            f"{before.bytes:,}",
            f"{after.bytes:,}",
        )
        rows.add_row(feed, *(_rows_at(table, evidence.version(point, feed)) for point, _ in _POINTS))
    console.print(sizes, rows)


def _rows_at(table: TableReader, version: int) -> str:
    return f"{table.rows(version).num_rows:,} (v{version})"


def _show_vacuum(console: Console, evidence: Evidence) -> None:
    shown = Table(title="What vacuum would delete once the retention is over, and why", title_justify="left")
    for column in ("table", "files", "bytes", "reason"):
        shown.add_column(column, justify="right" if column in ("files", "bytes") else "left")
    for feed, plan in sorted(evidence.facts["vacuum_plans"].items()):
        reasons: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for file in plan["files"]:
            reasons[file["reason"]] += 1
            sizes[file["reason"]] += file["size_bytes"]
        for reason, count in reasons.most_common():
            shown.add_row(feed, f"{count:,}", f"{sizes[reason]:,}", reason)
    console.print(shown)


def _show_skipping(console: Console, evidence: Evidence) -> None:
    answer = typical_query(evidence)
    console.print(
        f"A typical query, [bold]{answer.query}[/bold]: skips {answer.files_total - answer.files_read} of "
        f"{answer.files_total} files; {answer.rows_of_read_files:,} rows\n"
    )


def _show_history(console: Console, evidence: Evidence) -> None:
    for feed in evidence.profile.feeds:
        shown = Table(title=f"History of {feed}", title_justify="left")
        for column in ("version", "when", "operation", "run", "task"):
            shown.add_column(column)
        for entry in evidence.tables[feed].history():
            when = datetime.fromtimestamp(entry["timestamp"] / 1000, tz=UTC)
            origin = provenance(entry)
            shown.add_row(
                str(entry["version"]),
                f"{when:%H:%M:%S}",
                str(entry["operation"]),
                str(origin.get("run", "")),
                str(origin.get("task", "")),
            )
        console.print(shown)


def _show_checks(console: Console, checks: list[Check]) -> None:
    console.print("[bold]Checks[/bold]")
    for check in checks:
        mark = "[green]held  [/green]" if check.held else "[red bold]FAILED[/red bold]"
        console.print(f"  {mark} {check.name}" + (f" [dim]({check.detail})[/dim]" if check.detail else ""))
    failed = sum(not check.held for check in checks)
    verdict = f"[red bold]{failed} of {len(checks)} checks failed[/red bold]" if failed else ""
    console.print(verdict or f"[green bold]All {len(checks)} checks held[/green bold]")


if __name__ == "__main__":
    sys.exit(main())
