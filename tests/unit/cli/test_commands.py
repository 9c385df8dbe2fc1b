from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
import typer
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from delta_core import DeltaTable
from delta_core.actions import SetTransaction
from delta_core.cli import command_group, job_commands
from delta_core.cli.app import app
from delta_core.cli.command_group import BUILT_IN
from delta_core.cli.console import exit_code
from delta_core.cli.progress_bar import BarSink, progress_sink
from delta_core.cli.render import when
from delta_core.dml.write import write_deltalake
from delta_core.execution.progress import NullProgress, ProgressEvent
from delta_core.jobs.codec import result_from_json, spec_to_json
from delta_core.jobs.job_result import JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.maintenance.messages import counted, size
from delta_core.version import VERSION
from scripts.docs.command_line import reference_page


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "t"
    for number in range(4):
        deltalake.write_deltalake(str(path), pa.table({"id": [number], "s": ["x"]}), mode="append")
    return str(path)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_verbs_from_seeing_to_restoring(table: str) -> None:
    assert "4 (" in call("describe", table).stdout
    assert "checkpoint" in call("plan", table, "--list-vacuum").stdout
    dry = call("optimize", table, "--dry-run")
    assert (dry.exit_code, dry.stdout[:21]) == (0, "would rewrite 4 files")
    done = call("optimize", table, "--target-size", "64mb")
    assert "rewrote 4 files" in done.stdout
    assert "version 4" in done.stdout
    assert "nothing to do" in call("optimize", table).stdout
    assert "would write a checkpoint of version 4\n" in call("checkpoint", table, "--dry-run").stdout
    written = call("checkpoint", table).stdout
    assert "wrote a checkpoint of version 4" in written
    assert "it describes 1 file\n" in written
    assert "has a checkpoint" in call("checkpoint", table).stdout
    assert "would delete 0 log files" in call("checkpoint", table, "--cleanup", "--dry-run").stdout
    assert "pass --apply" in call("restore", table, "--version", "1").stdout
    assert "restored as version 5" in call("restore", table, "--version", "1", "--apply").stdout
    assert "RESTORE" in call("history", table, "--limit", "1").stdout
    assert "no anomalies" in call("audit", table).stdout
    assert deltalake.DeltaTable(table).to_pyarrow_table().num_rows == 2


def test_a_restore_tells_which_keys_stay(table: str) -> None:
    key = SetTransaction(app_id="january", version=1)
    write_deltalake(table, pa.table({"id": [9], "s": ["x"]}), mode="append", txn=key)
    shown = call("restore", table, "--version", "1").stdout
    assert "january" in shown
    assert "stay in the table" in shown
    assert "stay in the table" not in call("restore", table, "--version", "4").stdout


def test_a_restore_shows_the_rows_and_columns_that_change(table: str) -> None:
    wider = pa.table({"id": [9], "s": ["y"], "extra": [1.5]})
    deltalake.write_deltalake(table, wider, mode="append", schema_mode="merge")
    shown = call("restore", table, "--version", "2", "--diff", "rows").stdout
    assert "rows lost, 2 of 2:" in shown
    assert '{"id": 9, "s": "y", "extra": 1.5}' in shown
    assert "The comparison uses null instead." in shown
    assert "extra" in shown.split("rows lost, 2")[0]
    assert "rows lost" not in call("restore", table, "--version", "2").stdout
    refused = call("restore", table, "--version", "2", "--expected-version", "3", "--apply")
    assert refused.exit_code == 1
    assert "4 (WRITE)" in refused.stderr


def test_vacuum_deletes_only_with_apply_and_lists_reasons(table: str) -> None:
    call("optimize", table)
    flags = ("--retention-hours", "0", "--no-enforce-retention", "--force")
    listed = call("vacuum", table, *flags)
    assert "removed at version 4" in listed.stdout
    assert "would delete 4 of 5 files" in listed.stdout
    assert len(list(Path(table).glob("*.parquet"))) == 5
    assert "deleted 4 files" in call("vacuum", table, *flags, "--apply").stdout
    assert len(list(Path(table).glob("*.parquet"))) == 1
    refused = call("vacuum", table, "--retention-hours", "0")
    assert refused.exit_code == 2
    assert "168 hours" in refused.stderr


def test_a_repair_takes_out_only_with_apply_and_lists_what_is_missing(table: str) -> None:
    assert "no file is missing" in call("repair", table).stdout
    lost = sorted(Path(table).glob("*.parquet"))[0]
    lost.unlink()
    listed = call("repair", table)
    assert lost.name in listed.stdout.replace("\n", "")
    assert "would remove 1 missing file (" in listed.stdout
    assert "removed 1 missing file (" in call("repair", table, "--apply").stdout
    assert deltalake.DeltaTable(table).to_pyarrow_table().num_rows > 0
    assert "removed 0 missing files" in call("repair", table, "--apply").stdout


@pytest.mark.parametrize(
    "command", ["describe", "plan", "optimize", "vacuum", "checkpoint", "repair", "history", "audit"]
)
def test_json_is_one_document_on_standard_output(table: str, command: str) -> None:
    result = call(command, table, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    if command not in ("history", "audit"):
        assert result_from_json(result.stdout).status is JobStatus.SUCCEEDED
    else:
        assert document


def test_z_order_by_options(table: str) -> None:
    options = ("--z-order", "id", "--memory-limit", "64mb", "--target-size", "1mb")
    dry = call("optimize", table, *options, "--dry-run")
    assert (dry.exit_code, dry.stdout[:21]) == (0, "would rewrite 4 files")
    assert "rewrote 4 files" in call("optimize", table, *options).stdout
    assert "nothing to do" in call("optimize", table, *options, "--min-new-fraction", "0.5").stdout
    assert "rewrote 1 file" in call("optimize", table, "--z-order", "id", "--full").stdout
    refused = call("optimize", table, "--full")
    assert refused.exit_code != 0
    assert "Name the columns in z_order_by" in refused.stderr


def test_a_dry_run_of_a_checkpoint_answers_and_writes_nothing(table: str) -> None:
    planned = result_from_json(call("checkpoint", table, "--dry-run", "--json").stdout)
    assert (planned.kind, planned.predicted, planned.actual) == ("checkpoint", {"version": 3}, {})
    assert not list(Path(table, "_delta_log").glob("*checkpoint*"))
    both = call("checkpoint", table, "--dry-run", "--cleanup")
    assert both.stdout.splitlines() == [
        "would write a checkpoint of version 3",
        "would delete 0 log files",
    ]
    call("checkpoint", table)
    planned = result_from_json(call("checkpoint", table, "--dry-run", "--json").stdout)
    assert (dict(planned.predicted), dict(planned.actual)) == ({}, {})
    assert "has a checkpoint" in planned.output["reason"]


def test_a_plan_is_worded_for_people(table: str) -> None:
    shown = call("plan", table).stdout
    assert "would turn 4 files into 1" in shown
    assert "vacuum is due from 64.0 MiB" in shown
    assert "4 commits follow" in shown
    assert "0.4" in shown
    call("optimize", table)
    call("checkpoint", table)
    assert "nothing to compact" in call("plan", table).stdout
    deltalake.write_deltalake(table, pa.table({"id": [9], "s": ["x"]}), mode="append")
    assert "1 commit follows" in call("plan", table).stdout


def test_pins_of_streams_are_shown(table: str) -> None:
    for _ in DeltaTable(table).follow(pin="daily"):
        pass
    shown = call("describe", table).stdout
    assert "the stream daily" in shown
    pins = json.loads(call("describe", table, "--json").stdout)["output"]["pins"]
    assert [(pin["holder"], pin["following"]) for pin in pins] == [("the stream daily", "commits")]


def test_times_name_their_zone(table: str) -> None:
    assert "committed (UTC)" in call("describe", table).stdout
    shown = call("restore", table, "--version", "1").stdout
    assert " UTC)" in shown
    assert "when (UTC)" in shown


def test_every_error_has_one_layout(table: str) -> None:
    for arguments in (("describe", "/no/such/table"), ("history", "/no/such/table"), ("restore", table)):
        (line,) = call(*arguments).stderr.splitlines()
        assert line.startswith("error: ")
        assert " Fix: " in line


def test_the_example_of_a_spec_runs(table: str, tmp_path: Path) -> None:
    example = reference_page().partition("```json\n")[2].partition("```")[0]
    assert len(example.splitlines()) == 3
    assert example.splitlines()[1].strip() in call("run", "--help").stdout
    spec = tmp_path / "spec.json"
    spec.write_text(example.replace("/data/flights", table))
    result = call("run", str(spec))
    assert result.exit_code == 0
    assert result_from_json(result.stdout).predicted["files_removed"] == 4


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("describe", "/no/such/table"), 1, "no Delta table"),
        (("history", "/no/such/table"), 1, "no Delta table"),
        (("audit", "/no/such/table"), 1, "No Delta table"),
        (("describe", "ftp://bucket/t"), 2, "ftp"),
        (("optimize", "TABLE", "--where", "id >"), 2, "not valid Spark SQL"),
        (("optimize", "TABLE", "--where", "nope = 1"), 2, "nope"),
        (("optimize", "TABLE", "--z-order", "nope"), 2, "no column 'nope'"),
        (("optimize", "TABLE", "--target-size", "huge"), 2, "not a size"),
        (("vacuum", "TABLE", "--retention-hours", "1"), 2, "168 hours"),
        (("restore", "TABLE", "--version", "99"), 1, "99"),
        (("restore", "TABLE"), 2, "--version N or --timestamp"),
        (("restore", "TABLE", "--version", "1", "--timestamp", "2024-05-01"), 2, "Both were given"),
        (("restore", "TABLE", "--timestamp", "yesterday"), 2, "not a time"),
        (("plan", "TABLE", "--policies", "/no/file.yaml"), 2, "cannot be read"),
        (("run", "/no/spec.json"), 2, "cannot be read"),
        (("frobnicate",), 2, "No such command"),
        (("optimize",), 2, "Missing argument"),
    ],
)
def test_errors_have_a_code_and_no_traceback(
    table: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = call(*(table if argument == "TABLE" else argument for argument in arguments))
    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_a_spec_is_run_and_its_result_written_whole(table: str, tmp_path: Path) -> None:
    spec, result = tmp_path / "spec.json", tmp_path / "out" / "result.json"
    spec.write_text(spec_to_json(JobSpec(kind="optimize", table=TableRef(uri=table), job_id="j1")))
    done = call("run", str(spec), "--result", str(result), "--events")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert result_from_json(result.read_text()).commits == (4,)
    assert [p.name for p in result.parent.iterdir()] == ["result.json"]
    assert [json.loads(line)["name"] for line in done.stderr.splitlines()][-1] == "job.finished"
    printed = call("run", str(spec))
    assert result_from_json(printed.stdout).job_id == "j1"


def test_a_result_that_cannot_be_written_is_refused_before_the_job(table: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(spec_to_json(JobSpec(kind="optimize", table=TableRef(uri=table))))
    refused = call("run", str(spec), "--result", str(spec / "result.json"))
    assert refused.exit_code == 2, refused.output
    assert "cannot be written" in refused.stderr
    assert deltalake.DeltaTable(table).version() == 3


def test_a_result_that_cannot_be_written_any_more_is_printed(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, result = tmp_path / "spec.json", tmp_path / "result.json"
    spec.write_text(spec_to_json(JobSpec(kind="optimize", table=TableRef(uri=table))))

    def then_taken(path: Path) -> None:
        path.mkdir()

    monkeypatch.setattr(job_commands, "require_writable", then_taken)
    failed = call("run", str(spec), "--result", str(result))
    assert failed.exit_code == 1
    assert result_from_json(failed.stdout).commits == (4,)
    assert "cannot be written" in failed.stderr


def test_a_failing_or_malformed_spec_has_its_code(table: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(
        spec_to_json(JobSpec(kind="verify", table=TableRef(uri=table), params={"expected_rows": 9}))
    )
    failed = call("run", str(spec))
    assert failed.exit_code == 1
    assert result_from_json(failed.stdout).status is JobStatus.FAILED
    spec.write_text("{")
    assert call("run", str(spec)).exit_code == 2
    spec.write_text(spec_to_json(JobSpec(kind="frobnicate", table=TableRef(uri=table))))
    assert call("run", str(spec)).exit_code == 2


def test_outcomes_and_their_codes() -> None:
    assert exit_code(JobStatus.SUCCEEDED) == 0
    assert exit_code(JobStatus.FAILED, "STORAGE_ERROR") == 1
    assert exit_code(JobStatus.FAILED, "INVALID_JOB_SPEC") == 2
    assert exit_code(JobStatus.UNKNOWN, "COMMIT_STATE_UNKNOWN") == 3


def test_hostile_text_neither_drives_the_terminal_nor_is_markup(tmp_path: Path) -> None:
    path = tmp_path / "t"
    evil = "\x1b[31mred\x1b[0m [bold]x[/bold] \u202eevil\nnew line"
    deltalake.write_deltalake(
        str(path),
        pa.table({"id": [1]}),
        name=evil,
        commit_properties=deltalake.CommitProperties(
            custom_metadata={"userMetadata": json.dumps({"dag": evil})}
        ),
    )
    for command in ("describe", "history", "audit"):
        for result in (call(command, str(path)), call(command, str(path), "--json")):
            assert "\x1b" not in result.output
            assert "\u202e" not in result.output
    assert "[bold]x[/bold]" in call("describe", str(path)).stdout
    missing = call("describe", str(tmp_path / "a\x1b[31mb"))
    assert "\x1b" not in missing.output


def test_audit_fails_when_something_is_odd(table: str) -> None:
    (Path(table) / "_delta_log" / f"{4:020}.json").write_text('{"txn": {"appId": "a", "version": 1}}\n')
    result = call("audit", table)
    assert result.exit_code == 1
    assert "no_provenance" in result.stdout


def test_plan_goes_by_a_policy_file(table: str, tmp_path: Path) -> None:
    policies = tmp_path / "p.yaml"
    policies.write_text(f"tables: {{t: {{uri: '{table}', compaction: {{min_small_files: 2}}}}}}\n")
    assert json.loads(call("plan", table, "--policies", str(policies), "--json").stdout)["output"]["due"] == [
        "optimize"
    ]
    assert json.loads(call("plan", table, "--json").stdout)["output"]["due"] == []


class _Point:
    def __init__(self, name: str, loaded: Any) -> None:
        self.name = name
        self._loaded = loaded

    def load(self) -> Any:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


def test_commands_of_other_packages_load_when_used(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    extension = typer.Typer()

    @extension.command()
    def hello(name: str) -> None:
        """Greet."""
        typer.echo(f"hello {name}")

    points = [_Point("greet", extension), _Point("broken", ImportError("no module named pyspark"))]
    monkeypatch.setattr(command_group, "entry_points", lambda group: points)
    assert call("greet", "you").stdout == "hello you\n"
    assert "greet" in call("--help").stdout
    broken = call("broken", "anything")
    assert broken.exit_code == 2
    assert "no module named pyspark" in broken.stderr
    assert call("describe", table).exit_code == 0


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_help_says_of_a_command_what_its_own_help_says_first(name: str) -> None:
    assert BUILT_IN[name].load(name).help.splitlines()[0] == BUILT_IN[name].summary


def test_the_version() -> None:
    assert call("--version").stdout == f"deltaward {VERSION}\n"


def test_nothing_is_drawn_where_nobody_watches() -> None:
    with progress_sink() as sink:
        assert isinstance(sink, NullProgress)


def test_the_bar_follows_the_events() -> None:
    with Progress(console=Console(quiet=True)) as progress:
        sink = BarSink(progress)
        sink.emit(ProgressEvent(name="data.writing", job_id="j", at_ms=0, done=1, total=4))
        (task,) = progress.tasks
        assert (task.description, task.completed, task.total) == ("writing", 1, 4)
        sink.emit(ProgressEvent(name="something.else", job_id="j", at_ms=0))
        assert (task.description, task.completed) == ("something.else", 0)


def test_sizes_and_times_for_people() -> None:
    assert [size(n) for n in (0, 1023, 1024, 5 << 30, 3 << 40, None)] == [
        *("0 B", "1023 B", "1.0 KiB", "5.0 GiB", "3.0 TiB", "?")
    ]
    assert [counted(n, "file") for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert when(0) == "1970-01-01 00:00:00"
    assert when(None) == ""
    assert when(10**18) == str(10**18)
