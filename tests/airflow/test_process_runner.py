"""The process runner against real drivers: small scripts that behave like the Spark driver, or badly."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import psutil
import pytest

from delta_airflow.errors import (
    DriverLostError,
    JobCancelledError,
    JobDeadlineError,
    TransientJobFailedError,
)
from delta_airflow.hooks.run_state import RunPhase
from delta_airflow.runners import keeper
from delta_airflow.runners.process import Command, ProcessRunner
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import CommitStateUnknownError, DeltaError, InvalidJobSpecError, JobFailedError
from delta_core.execution.progress import ProgressEvent
from delta_core.jobs.job_spec import JobSpec, TableRef
from tests.support.repository import ROOT
from tests.support.waiting import comes_true

_PREAMBLE = """
import json, os, signal, subprocess, sys, time
spec = json.load(open(sys.argv[1]))

def event(name, **more):
    document = {"name": name, "job_id": spec["job_id"], "at_ms": 1, **more}
    print("DELTAWARD_EVENT " + json.dumps(document), flush=True)

def result(status, *, job_id=None, **more):
    document = {"format_version": 1, "job_id": job_id or spec["job_id"], "kind": "load", "status": status}
    with open(sys.argv[2], "w") as file:
        json.dump({**document, **more}, file)

def failed(code, retryable):
    result("failed", error={"code": code, "message": "because", "retryable": retryable})
"""

_HANG = """
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
child.stdout.readline()
event("ready", detail={"pids": [os.getpid(), child.pid]})
time.sleep(600)
"""


@dataclass
class ScriptCommand:
    """Starts a script of the test instead of the Spark driver."""

    script: Path
    private_file: Path | None = None
    name: str = "script"

    def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
        return Command(
            arguments=(sys.executable, str(self.script), str(spec_path), str(result_path)),
            environment=dict(os.environ),
            private_file=self.private_file,
        )


@dataclass
class Harness:
    directory: RunDirectory
    log: logging.Logger
    lines: list[str]
    private_file: Path | None = None

    def runner(self, body: str, *, grace_seconds: float = 3.0) -> ProcessRunner:
        script = self.directory.path / "driver.py"
        script.write_text(_PREAMBLE + body)
        return ProcessRunner(
            ScriptCommand(script, self.private_file),
            directory=self.directory,
            log=self.log,
            grace_seconds=grace_seconds,
        )

    def phase(self) -> RunPhase:
        return self.directory.read_state().phase


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    handler = _Lines()
    log = logging.Logger("driver")
    log.addHandler(handler)
    return Harness(directory=RunDirectory(path=tmp_path), log=log, lines=handler.lines)


def spec(*, deadline_ms: int | None = None) -> JobSpec:
    return JobSpec(
        kind="load",
        table=TableRef(uri="file:///t"),
        params={"mode": "append"},
        job_id="j1",
        deadline_ms=deadline_ms,
    )


def ignore(event: ProgressEvent) -> None:
    return None


def gone(pid: int) -> bool:
    """True when the process has ended, even if nobody has reaped it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def all_gone_soon(pids: list[int]) -> bool:
    return comes_true(lambda: all(gone(pid) for pid in pids))


def test_success_needs_a_result_and_exit_status_zero(harness: Harness) -> None:
    events: list[ProgressEvent] = []
    runner = harness.runner(
        'event("job.started"); print("reading", flush=True); event("data.writing", done=1, total=3)\n'
        'result("succeeded", version_from=3, version_to=4, commits=[4])'
    )
    result = runner.run(spec(), on_event=events.append)
    assert (result.version_from, result.version_to, result.commits) == (3, 4, (4,))
    assert [(event.name, event.done, event.total) for event in events] == [
        ("job.started", None, None),
        ("data.writing", 1, 3),
    ]
    assert "reading" in harness.lines
    assert not any("DELTAWARD_EVENT" in line for line in harness.lines)
    state = harness.directory.read_state()
    assert (state.phase, state.last_event) == (RunPhase.SUCCEEDED, "data.writing")
    assert json.loads(harness.directory.spec_path.read_text())["params"] == {"mode": "append"}


@pytest.mark.parametrize(
    ("body", "error", "retryable"),
    [
        ('failed("SCHEMA_MISMATCH", False); sys.exit(1)', JobFailedError, False),
        ('failed("STORAGE_ERROR", True); sys.exit(1)', TransientJobFailedError, True),
        ('failed("SCHEMA_MISMATCH", False)', JobFailedError, False),
        ('result("unknown", error=None); sys.exit(3)', CommitStateUnknownError, False),
        ('result("unknown", error=None)', CommitStateUnknownError, False),
        ("sys.exit(3)", CommitStateUnknownError, False),
        ('result("succeeded"); sys.exit(3)', CommitStateUnknownError, False),
        ("sys.exit(2)", InvalidJobSpecError, False),
        ("pass", JobFailedError, False),
        ("sys.exit(1)", DriverLostError, True),
        ("os.kill(os.getpid(), signal.SIGKILL)", DriverLostError, True),
        ('result("succeeded"); sys.exit(1)', DriverLostError, True),
        ('result("succeeded"); os.kill(os.getpid(), signal.SIGKILL)', DriverLostError, True),
        ('result("succeeded", job_id="another")', JobFailedError, False),
        ('open(sys.argv[2], "w").write("{")', JobFailedError, False),
        ('result("succeeded", format_version=99)', JobFailedError, False),
    ],
)
def test_anything_else_is_a_failure_of_its_kind(
    harness: Harness, body: str, error: type[DeltaError], retryable: bool
) -> None:
    with pytest.raises(error) as caught:
        harness.runner(body).run(spec(), on_event=ignore)
    assert type(caught.value) is error
    assert caught.value.retryable is retryable
    expected = RunPhase.UNKNOWN if error is CommitStateUnknownError else RunPhase.FAILED
    assert harness.phase() is expected


def test_a_result_of_an_earlier_run_counts_for_nothing(harness: Harness) -> None:
    harness.runner('result("succeeded")').run(spec(), on_event=ignore)
    with pytest.raises(JobFailedError, match="without a result"):
        harness.runner("pass").run(spec(), on_event=ignore)


def test_a_failure_shows_the_last_lines_of_output(harness: Harness) -> None:
    with pytest.raises(DriverLostError, match="java: command not found"):
        harness.runner('print("java: command not found", file=sys.stderr); sys.exit(1)').run(
            spec(), on_event=ignore
        )


def test_a_program_that_is_not_there_is_a_failure(harness: Harness) -> None:
    class Missing(ScriptCommand):
        def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
            return Command(arguments=("/no/such/spark-submit",), environment={})

    runner = ProcessRunner(Missing(Path("x")), directory=harness.directory, log=harness.log)
    with pytest.raises(DriverLostError, match="spark-submit: No such file"):
        runner.run(spec(), on_event=ignore)


def test_cancel_kills_the_whole_group_even_what_ignores_sigterm(harness: Harness) -> None:
    runner = harness.runner(_HANG, grace_seconds=0.3)
    pids: list[int] = []

    def ready(event: ProgressEvent) -> None:
        pids.extend(event.detail["pids"])
        threading.Thread(target=runner.cancel).start()

    with pytest.raises(JobCancelledError):
        runner.run(spec(), on_event=ready)
    assert len(pids) == 2
    assert all_gone_soon(pids)
    assert harness.phase() is RunPhase.CANCELLED


def test_cancel_works_from_a_signal_handler_of_the_waiting_thread(harness: Harness) -> None:
    runner = harness.runner(_HANG, grace_seconds=0.3)
    pids: list[int] = []

    def ready(event: ProgressEvent) -> None:
        pids.extend(event.detail["pids"])
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    before = signal.signal(signal.SIGALRM, lambda *_: runner.cancel())
    try:
        with pytest.raises(JobCancelledError):
            runner.run(spec(), on_event=ready)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert all_gone_soon(pids)


def test_a_timeout_raised_into_the_wait_leaves_no_process(harness: Harness) -> None:
    class Timeout(BaseException):
        pass

    def raise_it(number: int, frame: FrameType | None) -> None:
        raise Timeout

    pids: list[int] = []

    def ready(event: ProgressEvent) -> None:
        pids.extend(event.detail["pids"])
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    before = signal.signal(signal.SIGALRM, raise_it)
    try:
        with pytest.raises(Timeout):
            harness.runner(_HANG, grace_seconds=0.3).run(spec(), on_event=ready)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert all_gone_soon(pids)
    assert harness.phase() is RunPhase.CANCELLED


@pytest.mark.parametrize("ending", ["success", "failure", "cancelled", "never started"])
def test_a_private_file_is_there_for_the_driver_and_goes_with_it(harness: Harness, ending: str) -> None:
    harness.private_file = private = harness.directory.path / "keytab"
    private.write_text("k")
    seen = f"assert open({str(private)!r}).read() == 'k'; "
    bodies = {"success": seen + 'result("succeeded")', "failure": seen + "sys.exit(1)", "cancelled": _HANG}
    runner = harness.runner(bodies.get(ending, ""), grace_seconds=0.3)
    if ending == "never started":
        runner.cancel()

    def cancel(event: ProgressEvent) -> None:
        assert private.exists()
        threading.Thread(target=runner.cancel).start()

    if ending == "success":
        runner.run(spec(), on_event=ignore)
    else:
        with pytest.raises(DriverLostError if ending == "failure" else JobCancelledError):
            runner.run(spec(), on_event=cancel)
    assert not private.exists()


def test_a_cancelled_runner_starts_nothing(harness: Harness) -> None:
    runner = harness.runner('result("succeeded")')
    runner.cancel()
    with pytest.raises(JobCancelledError):
        runner.run(spec(), on_event=ignore)
    assert not harness.directory.result_path.exists()


def test_the_deadline_stops_the_job(harness: Harness) -> None:
    pids: list[int] = []
    # On a busy machine the job may not have begun when its time is over: then it gets more.
    for seconds in (1.5, 15, 150):
        deadline_ms = SYSTEM_CLOCK.now_ms() + int(seconds * 1000)
        with pytest.raises(JobDeadlineError) as caught:
            harness.runner(_HANG, grace_seconds=0.2).run(
                spec(deadline_ms=deadline_ms), on_event=lambda event: pids.extend(event.detail["pids"])
            )
        assert caught.value.retryable
        if pids:
            break
    assert len(pids) == 2
    assert all_gone_soon(pids)


def test_what_a_driver_leaves_behind_is_ended_with_it(harness: Harness) -> None:
    body = _HANG.replace("time.sleep(600)\n", 'result("succeeded")\n')
    assert body != _HANG
    pids: list[int] = []
    result = harness.runner(body, grace_seconds=0.2).run(
        spec(), on_event=lambda event: pids.extend(event.detail["pids"])
    )
    assert result.job_id == "j1"
    assert all_gone_soon(pids)


def test_a_driver_does_not_outlive_a_task_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(_PREAMBLE + _HANG)
    private = tmp_path / "keytab"
    private.write_text("k")
    task = subprocess.Popen(
        [sys.executable, "-c", _TASK, str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        },
    )
    with task:
        assert task.stdout is not None
        pids = json.loads(task.stdout.readline())
        assert not any(gone(pid) for pid in pids)
        assert private.exists()
        task.kill()
    assert all_gone_soon(pids)
    assert not private.exists()


def test_a_keeper_whose_task_has_gone_starts_nothing(tmp_path: Path) -> None:
    marker, private = tmp_path / "was-here", tmp_path / "keytab"
    private.write_text("k")
    command = [sys.executable, "-c", f"open({str(marker)!r}, 'w')"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", keeper.__file__, "1", "--private", str(private), "--", *command],
        check=False,
    )
    assert done.returncode == keeper.LOST
    assert not marker.exists()
    assert not private.exists()


_TASK = """
import json, logging, os, sys
from pathlib import Path
from delta_airflow.runners.process import Command, ProcessRunner
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.jobs.job_spec import JobSpec, TableRef

class Script:
    name = "script"
    def build(self, *, spec_path, result_path, spec):
        arguments = (sys.executable, sys.argv[1], str(spec_path), str(result_path))
        private = Path(sys.argv[2]) / "keytab"
        return Command(arguments=arguments, environment=os.environ, private_file=private)

runner = ProcessRunner(Script(), directory=RunDirectory(path=Path(sys.argv[2])), log=logging.getLogger())
runner.run(
    JobSpec(kind="load", table=TableRef(uri="file:///t"), job_id="j1"),
    on_event=lambda event: print(json.dumps(event.detail["pids"]), flush=True),
)
"""


def test_output_without_line_ends_is_cut_and_bytes_that_are_no_text_are_kept_readable(
    harness: Harness,
) -> None:
    harness.runner(
        'sys.stdout.buffer.write(b"x" * 200_000 + b"\\n" + b"caf\\xe9\\n"); result("succeeded")'
    ).run(spec(), on_event=ignore)
    text = [line for line in harness.lines if set(line) <= {"x"} and line]
    assert sum(len(line) for line in text) == 200_000
    assert max(len(line) for line in text) < 150_000
    assert any(line.startswith("caf") for line in harness.lines)


@pytest.mark.parametrize(
    "line", ["{", '{"name": "x"}', "[]", "null", '{"name": "x", "job_id": "j", "at_ms": "z"}']
)
def test_a_damaged_event_is_logged_as_output(harness: Harness, line: str) -> None:
    events: list[ProgressEvent] = []
    harness.runner(f"print('DELTAWARD_EVENT ' + {line!r}); result('succeeded')").run(
        spec(), on_event=events.append
    )
    assert events == []
    assert f"DELTAWARD_EVENT {line}" in harness.lines
