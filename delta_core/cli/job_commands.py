"""Commands that run a job: `describe plan optimize vacuum checkpoint restore repair run`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from delta_core.cli.console import BAD_INPUT, FAILED, exit_code, print_error, print_note
from delta_core.cli.files import require_writable, write_atomically
from delta_core.cli.options import Apply, AsJson, OptionFile, Quiet, Uri, storage_options
from delta_core.cli.progress_bar import progress_sink
from delta_core.cli.render import render_result
from delta_core.errors import ConfigurationError, InvalidJobSpecError
from delta_core.execution.sinks import JsonLinesSink, TeeSink
from delta_core.jobs.codec import result_to_json, spec_from_json
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.policies.load import load_policies
from delta_core.policies.resolve import resolve
from delta_core.table_features.table_properties import parse_bytes

PolicyFile = Annotated[
    Path | None,
    typer.Option("--policies", help="YAML file with the rules that decide which maintenance is due."),
]


class DiffLevel(StrEnum):
    """The detail of a restore's comparison with the current version."""

    FILES = "files"
    ROWS = "rows"


def describe(table: Uri, options: OptionFile = None, as_json: AsJson = False) -> None:
    """Show a table's identity, schema, properties, protocol, size, and its pins."""
    _finish(_run("describe", table, {}, options, quiet=True), as_json=as_json)


def plan(
    table: Uri,
    policies: PolicyFile = None,
    list_vacuum: Annotated[
        bool,
        typer.Option(
            "--list-vacuum", help="Also list the store to find the files that a vacuum would delete."
        ),
    ] = False,
    options: OptionFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show a table's health, which maintenance is due, and why."""
    params: dict[str, Any] = {"list_vacuum": list_vacuum}
    if policies is not None:
        params["rules"] = resolve(load_policies(policies), table).rules().to_json()
    _finish(_run("plan", table, params, options, quiet=quiet), as_json=as_json)


def optimize(
    table: Uri,
    where: Annotated[
        str | None, typer.Option(help="Only partitions that match this Spark SQL condition.")
    ] = None,
    target_size: Annotated[
        str | None,
        typer.Option(help="Size of the new files, such as 128mb. By default the table's target size."),
    ] = None,
    z_order: Annotated[
        list[str] | None,
        typer.Option(help="Z-order rows by this column. Repeat it for each column."),
    ] = None,
    min_new_fraction: Annotated[
        float | None,
        typer.Option(
            help="Skip partitions, or a clustered table, with a smaller share of new bytes.",
            min=0,
            max=1,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="With --z-order, also rewrite files in order. In a clustered table, also files of other "
            "writers.",
        ),
    ] = False,
    memory_limit: Annotated[
        str | None,
        typer.Option(help="Memory for sorting rows, such as 2gb. A larger sort spills to disk."),
    ] = None,
    options: OptionFile = None,
    apply: Apply = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compact small files, or sort rows by columns. No row changes.

    A table with clustering columns is clustered by these columns.
    """
    params: dict[str, Any] = {"predicate": where, "dry_run": not apply}
    if target_size is not None:
        params["target_size_bytes"] = _size_bytes(target_size)
    if z_order:
        params["z_order_by"] = z_order
    if min_new_fraction is not None:
        params["min_new_fraction"] = min_new_fraction
    if full:
        params["full"] = True
    if memory_limit is not None:
        params["memory_limit_bytes"] = _size_bytes(memory_limit)
    _finish(_run("optimize", table, params, options, quiet=quiet), as_json=as_json)


def vacuum(
    table: Uri,
    retention_hours: Annotated[
        float | None,
        typer.Option(
            help="Keep files that are younger than this number of hours. By default the table's retention, "
            "at least 168."
        ),
    ] = None,
    enforce_retention: Annotated[
        bool, typer.Option(help="Refuse a retention that is shorter than the safe minimum.")
    ] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Confirm --no-enforce-retention: files in use may be deleted.")
    ] = False,
    options: OptionFile = None,
    apply: Apply = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Delete files that no retained version needs. A dry run unless --apply is given."""
    params = {
        "retention_hours": retention_hours,
        "enforce_retention": enforce_retention,
        "force": force,
        "dry_run": not apply,
    }
    _finish(_run("vacuum", table, params, options, quiet=quiet), as_json=as_json)


def checkpoint(
    table: Uri,
    cleanup: Annotated[
        bool, typer.Option("--cleanup", help="Then delete log files that no retained version needs.")
    ] = False,
    options: OptionFile = None,
    apply: Apply = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a checkpoint, so that opening the table reads less."""
    result = _run("checkpoint", table, {"dry_run": not apply}, options, quiet=quiet)
    if result.error is not None or not cleanup:
        _finish(result, as_json=as_json)
    if not as_json:
        render_result(result)
    _finish(_run("cleanup_metadata", table, {"dry_run": not apply}, options, quiet=quiet), as_json=as_json)


def restore(
    table: Uri,
    version: Annotated[int | None, typer.Option(help="The version to bring back.", min=0)] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(help="The time to bring back, such as 2024-05-01T12:00:00. UTC when it has no zone."),
    ] = None,
    ignore_missing_files: Annotated[
        bool, typer.Option("--ignore-missing-files", help="Restore without the rows of missing files.")
    ] = False,
    diff: Annotated[
        DiffLevel,
        typer.Option(
            help="Detail of the comparison. rows reads the files that the restore adds and removes."
        ),
    ] = DiffLevel.FILES,
    expected_version: Annotated[
        int | None,
        typer.Option(help="Refuse when the table has newer versions than this one.", min=0),
    ] = None,
    options: OptionFile = None,
    apply: Apply = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Restore a table to an earlier version. A dry run unless --apply is given."""
    if (version is None) == (timestamp is None):
        raise ConfigurationError(
            "A restore needs either a version or a timestamp.",
            cause="Neither was given." if version is None else "Both were given.",
            fix="Pass --version N or --timestamp TIME; `deltaward history` lists both.",
        )
    params = {
        "version": version,
        "timestamp": timestamp,
        "ignore_missing_files": ignore_missing_files,
        "diff": diff.value,
        "expected_version": expected_version,
        "dry_run": not apply,
    }
    _finish(_run("restore", table, params, options, quiet=quiet), as_json=as_json)


def repair(
    table: Uri,
    options: OptionFile = None,
    apply: Apply = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Remove files from a table that are missing in the store. A dry run unless --apply is given."""
    _finish(_run("repair", table, {"dry_run": not apply}, options, quiet=quiet), as_json=as_json)


def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="JobSpec as a JSON file.")],
    result: Annotated[
        Path | None, typer.Option(help="File for the JobResult. It is printed when this is left out.")
    ] = None,
    events: Annotated[
        bool, typer.Option("--events", help="Print progress events as JSON lines on standard error.")
    ] = False,
    options: OptionFile = None,
    quiet: Quiet = False,
) -> None:
    """Run one job from its specification, without Spark.

    A specification, for example:

    \b
    {"format_version": 1, "kind": "optimize",
     "table": {"uri": "/data/flights"},
     "params": {"dry_run": true}}
    """  # noqa: D301 - a real backspace: click does not wrap what follows it
    try:
        job = spec_from_json(spec.read_bytes())
    except OSError as error:
        raise InvalidJobSpecError(
            f"The specification {str(spec)!r} cannot be read.", cause=f"{error}.", fix="Check the path."
        ) from error
    except InvalidJobSpecError as error:
        print_error(str(error))
        raise typer.Exit(BAD_INPUT) from error
    table_options = storage_options(job.table.uri, options)
    if result is not None:
        require_writable(result)
    with progress_sink(quiet=quiet or events) as bar:
        sink = TeeSink([bar, JsonLinesSink(typer.get_text_stream("stderr"))]) if events else bar
        outcome = run_job(job, JobContext(progress=sink, storage_options=table_options))
    text = result_to_json(outcome)
    if result is None:
        typer.echo(text)
    else:
        try:
            write_atomically(result, text + "\n")
        except ConfigurationError as error:
            # The job has run: its result must not be lost.
            typer.echo(text)
            print_error(str(error))
            _report_error(outcome)
            raise typer.Exit(_code(outcome) or FAILED) from error
    _report_error(outcome)
    raise typer.Exit(_code(outcome))


def _run(kind: str, table: str, params: Mapping[str, Any], options: Path | None, *, quiet: bool) -> JobResult:
    spec = JobSpec(kind=kind, table=TableRef(uri=table), params=params)
    table_options = storage_options(table, options)
    with progress_sink(quiet=quiet) as sink:
        return run_job(spec, JobContext(progress=sink, storage_options=table_options))


def _finish(result: JobResult, *, as_json: bool) -> None:
    """Show the result and end with its exit code."""
    if as_json:
        typer.echo(result_to_json(result))
    elif result.error is None or result.output:
        render_result(result)
    _report_error(result)
    raise typer.Exit(_code(result))


def _report_error(result: JobResult) -> None:
    for warning in result.warnings:
        print_note(f"warning: {warning}")
    if result.error is not None:
        print_error(result.error.message)


def _code(result: JobResult) -> int:
    return exit_code(result.status, result.error.code if result.error else None)


def _size_bytes(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{text!r} is not a size.", fix="Write a size such as 128mb, 1gb or 1048576."
        ) from error
