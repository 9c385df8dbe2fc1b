"""The command that certifies a store: `store-conformance`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from delta_core.cli.console import FAILED, NOT_CHECKED, print_json, print_line, print_note
from delta_core.cli.files import require_writable, write_atomically
from delta_core.cli.options import AsJson, OptionFile, Quiet, storage_options
from delta_core.conformance.check import CheckResult, Status
from delta_core.conformance.report import ConformanceReport, clean_up_lines
from delta_core.conformance.suite import DEFAULT_WRITERS, MAX_SECONDS, MOST_WRITERS, certify
from delta_core.errors import ConfigurationError

_WORDS = {
    Status.PASSED: "ok",
    Status.FAILED: "FAILED",
    Status.LIMITED: "limited",
    Status.NO_ACCESS: "NO ACCESS",
    Status.NOT_RUN: "not run",
}


def store_conformance(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of the directory for tables.")],
    options: OptionFile = None,
    writers: Annotated[
        int, typer.Option(help="How many processes race and commit.", min=2, max=MOST_WRITERS)
    ] = DEFAULT_WRITERS,
    max_seconds: Annotated[
        float, typer.Option(help="Time limit in seconds, including the clean-up.", min=20)
    ] = MAX_SECONDS,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report to this .md or .json file.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check that a store is safe for concurrent writers. The exit code is 1 when it is not.

    The exit code is 4 when the store could not be checked: it was unreachable, or it refused a request that
    every check needs. The command writes only below a new prefix under URL and deletes that prefix at the
    end.
    """
    if report is not None and report.suffix not in (".md", ".json"):
        raise ConfigurationError(
            "The report can only be written as Markdown or as JSON.",
            fix="Name a file that ends in .md or .json.",
        )
    if report is not None:
        require_writable(report)
    conformance = certify(
        url,
        storage_options(url, options),
        writers=writers,
        max_seconds=max_seconds,
        on_result=(lambda result: None) if quiet else _progress,
    )
    if as_json:
        print_json(conformance.to_json())
    else:
        _print(conformance)
    if report is not None:
        text = (
            json.dumps(conformance.to_json(), indent=2) + "\n"
            if report.suffix == ".json"
            else conformance.to_markdown()
        )
        write_atomically(report, text)
    if not conformance.certified:
        raise typer.Exit(FAILED if conformance.checked else NOT_CHECKED)


def _progress(result: CheckResult) -> None:
    print_note(f"{_WORDS[result.status]:>9}  {result.title}: {result.detail or result.problem}")


def _print(report: ConformanceReport) -> None:
    for result in report.results:
        if result.problem:
            print_line("")
            print_line(f"{result.title}: {_WORDS[result.status]}")
            print_line(f"  problem: {result.problem}")
            print_line(f"  cause:   {result.cause}")
            print_line(f"  fix:     {result.fix}")
    print_line("")
    for line in clean_up_lines(report):
        print_line(line)
    print_line(f"{report.seconds:.0f} s")
    print_line(report.verdict)
