"""Runs a job in a separate process group, with its output in the task log and its result in a file.

A job counts as successful only if both its result file and its exit status report success.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from delta_airflow.errors import DriverLostError, JobCancelledError, JobDeadlineError
from delta_airflow.hooks.run_state import RunPhase, RunState
from delta_airflow.runners import keeper
from delta_airflow.runners.base import EventCallback, require_success
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import CommitStateUnknownError, DeltaError, InvalidJobSpecError, JobFailedError
from delta_core.execution.progress import ProgressEvent
from delta_core.execution.sinks import event_from_json
from delta_core.jobs import JobResult, JobSpec, JobStatus

EVENT_PREFIX = "DELTAWARD_EVENT "
EXIT_SUCCESS = 0
EXIT_BAD_SPEC = 2
EXIT_UNKNOWN = 3

_POLL_SECONDS = 0.25
_MAX_LINE_BYTES = 64 << 10
_TAIL_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command that starts a driver. Secrets are in `environment`, never in `arguments`."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    private_file: Path | None = None
    """A file that only the driver needs, such as a keytab. It is deleted when the driver has ended."""


class CommandBuilder(Protocol):
    """Builds the command that starts the driver of one engine."""

    @property
    def name(self) -> str:
        """The runner's name."""
        ...

    def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
        """The command that runs the specification at `spec_path` and writes the result to `result_path`."""
        ...


class ProcessRunner:
    """Runs a job in a separate process group.

    Args:
        builder: builds the command of the engine.
        directory: the directory for specification, result and state.
        log: receives the driver's output, line by line.
        grace_seconds: the time between SIGTERM and SIGKILL. It must be less than five seconds, because
            Airflow kills a task five seconds after it has asked the task to end.
    """

    def __init__(
        self,
        builder: CommandBuilder,
        *,
        directory: RunDirectory,
        log: logging.Logger,
        clock: Clock = SYSTEM_CLOCK,
        grace_seconds: float = 3.0,
    ) -> None:
        self._builder = builder
        self._directory = directory
        self._log = log
        self._clock = clock
        self._grace_seconds = grace_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._cancelled = False

    def run(self, spec: JobSpec, *, on_event: EventCallback) -> JobResult:
        """Run the job; see `Runner.run`."""
        directory = self._directory
        directory.write_spec(spec)
        directory.result_path.unlink(missing_ok=True)
        state = RunState(job_id=spec.job_id, runner=self._builder.name, started_ms=self._clock.now_ms())
        command = self._builder.build(
            spec_path=directory.spec_path, result_path=directory.result_path, spec=spec
        )
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        try:
            if self._cancelled:
                raise JobCancelledError(f"Job {spec.job_id} was cancelled before it started.")
            self._process = self._start(command)
            state = state.advance(RunPhase.RUNNING, process_group=self._process.pid)
            directory.write_state(state)
            last_event = _LastEvent(on_event)
            try:
                in_time = self._follow(spec, tail=tail, on_event=last_event)
            finally:
                # No process may remain, however the wait ended. Airflow may raise a timeout here.
                self._end_group()
                self._process.wait()
                state = state if last_event.name is None else _with_event(state, last_event.name)
            result = self._judge(spec, code=self._process.returncode, in_time=in_time, tail=tail)
        except DeltaError as error:
            directory.write_state(_failed(state, error, self._clock))
            raise
        except BaseException:
            directory.write_state(
                state.advance(RunPhase.CANCELLED, finished_ms=self._clock.now_ms(), error_code="INTERRUPTED")
            )
            raise
        finally:
            if command.private_file is not None:
                command.private_file.unlink(missing_ok=True)
        directory.write_state(state.advance(RunPhase.SUCCEEDED, finished_ms=self._clock.now_ms()))
        return result

    def cancel(self) -> None:
        """End the driver's process group: SIGTERM, and SIGKILL after the grace period."""
        self._cancelled = True
        self._end_group()

    def _start(self, command: Command) -> subprocess.Popen[bytes]:
        private = () if command.private_file is None else ("--private", str(command.private_file))
        keeping = [sys.executable, "-I", "-S", keeper.__file__, str(os.getpid()), *private]
        arguments = [*keeping, "--", *command.arguments]
        self._log.info("Starting the driver: %s", " ".join(command.arguments))
        try:
            return subprocess.Popen(
                arguments,
                env=dict(command.environment),
                cwd=self._directory.path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise JobFailedError(
                "The driver cannot be started.",
                cause=str(error),
                fix="Free memory or processes on the worker, or shorten the arguments; see the cause.",
            ) from error

    def _follow(self, spec: JobSpec, *, tail: deque[str], on_event: EventCallback) -> bool:
        """Stream the output until the driver ends. False if the deadline passes first."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        lines = _LineSplitter()
        with process.stdout as stream, selectors.DefaultSelector() as selector:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
            open_ = True
            while not self._cancelled:
                ended = process.poll() is not None
                ready = selector.select(0 if ended else _POLL_SECONDS) if open_ else []
                if ready:
                    chunk = stream.read(_MAX_LINE_BYTES)
                    if chunk == b"":
                        open_ = False
                        selector.unregister(stream)
                    for line in lines.feed(chunk or b""):
                        self._take(line, tail=tail, on_event=on_event)
                elif ended:
                    # Do not wait for the pipe: a child process of the driver may hold it open for ever.
                    break
                elif not open_:
                    self._clock.sleep(_POLL_SECONDS)
                if spec.deadline_ms is not None and self._clock.now_ms() >= spec.deadline_ms and not ended:
                    return False
            for line in lines.flush():
                self._take(line, tail=tail, on_event=on_event)
        return True

    def _take(self, line: str, *, tail: deque[str], on_event: EventCallback) -> None:
        if line.startswith(EVENT_PREFIX):
            event = event_from_json(line.removeprefix(EVENT_PREFIX))
            if event is not None:
                on_event(event)
                return
        tail.append(line)
        self._log.info("%s", line)

    def _end_group(self) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            _signal_group(process.pid, signal.SIGTERM)
            give_up = self._clock.monotonic_seconds() + self._grace_seconds
            while process.poll() is None and self._clock.monotonic_seconds() < give_up:
                self._clock.sleep(0.05)
        # The leader may have ended while other processes of its group still run.
        _signal_group(process.pid, signal.SIGKILL)

    def _judge(self, spec: JobSpec, *, code: int, in_time: bool, tail: deque[str]) -> JobResult:
        """The result if both the exit status and the result file report success; else raise the error."""
        if self._cancelled:
            raise JobCancelledError(f"Job {spec.job_id} ({spec.kind}) was cancelled.")
        if not in_time:
            raise JobDeadlineError(
                f"Job {spec.job_id} ({spec.kind}) did not end before its deadline.",
                fix="Raise the connection's `deadline_seconds`, or make the job smaller.",
            )
        details = f"Exit status {code}; last output: " + (" | ".join(tail) or "none")
        try:
            result = self._directory.read_result(job_id=spec.job_id)
        except JobFailedError as error:
            raise _without_result(spec, code=code, cause=f"{error} {details}") from error
        if code == EXIT_UNKNOWN and result.status is not JobStatus.UNKNOWN:
            raise _without_result(spec, code=code, cause=details)
        if code != EXIT_SUCCESS and result.status is JobStatus.SUCCEEDED:
            raise DriverLostError(
                f"The driver of job {spec.job_id} ({spec.kind}) failed after it reported success.",
                cause=details,
            )
        return require_success(result)


def _without_result(spec: JobSpec, *, code: int, cause: str) -> DeltaError:
    title = f"job {spec.job_id} ({spec.kind})"
    if code == EXIT_UNKNOWN:
        return CommitStateUnknownError(
            f"It is not known whether the {title} committed.",
            cause=cause,
            fix="Look for the job's transaction id in the table's history before you clear the task.",
        )
    if code == EXIT_BAD_SPEC:
        return InvalidJobSpecError(f"The driver refused {title}.", cause=cause)
    if code == EXIT_SUCCESS:
        return JobFailedError(
            f"The driver of {title} ended without a result.", cause=cause, fix="Read the log of the task."
        )
    return DriverLostError(f"The driver of {title} was lost.", cause=cause)


class _LastEvent:
    """Forwards events and records the name of the last one."""

    def __init__(self, on_event: EventCallback) -> None:
        self._on_event = on_event
        self.name: str | None = None

    def __call__(self, event: ProgressEvent) -> None:
        self.name = event.name
        self._on_event(event)


def _with_event(state: RunState, name: str) -> RunState:
    return RunState.from_json({**state.to_json(), "last_event": name})


def _failed(state: RunState, error: DeltaError, clock: Clock) -> RunState:
    phase = RunPhase.FAILED
    if isinstance(error, JobCancelledError):
        phase = RunPhase.CANCELLED
    elif isinstance(error, CommitStateUnknownError):
        phase = RunPhase.UNKNOWN
    return state.advance(phase, finished_ms=clock.now_ms(), error_code=error.code)


def _signal_group(process_group: int, number: signal.Signals) -> None:
    try:
        os.killpg(process_group, number)
    except (ProcessLookupError, PermissionError):
        # The group has ended, or on some systems contains only zombies.
        return


class _LineSplitter:
    """Splits bytes into lines. A line longer than the limit is cut into pieces to limit the memory."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[str]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _MAX_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode("utf-8", "replace").rstrip("\r") for line in lines]

    def flush(self) -> list[str]:
        rest, self._rest = self._rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []
