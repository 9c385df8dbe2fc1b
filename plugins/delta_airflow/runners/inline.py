"""Runs a job in the task's own process, for work that only handles a table's metadata."""

from __future__ import annotations

from collections.abc import Mapping

from delta_airflow.errors import JobCancelledError
from delta_airflow.hooks.run_state import RunPhase, RunState
from delta_airflow.runners.base import EventCallback, require_success
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import CommitStateUnknownError, DeltaError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.progress import ProgressEvent
from delta_core.jobs import JobContext, JobResult, JobSpec, run_job

_AFTER_THE_COMMIT = frozenset({"commit.after", "checkpoint.before", "checkpoint.after", "job.finished"})


class _Cancelled(BaseException):
    """Ends `run_job` from within a progress event. Not a DeltaError, so that no handler catches it."""


class _Sink:
    """Forwards events, and stops a cancelled job between two steps before its commit."""

    def __init__(self, on_event: EventCallback) -> None:
        self._on_event = on_event
        self.cancelled = False
        self.last_event: str | None = None

    def emit(self, event: ProgressEvent) -> None:
        self.last_event = event.name
        self._on_event(event)
        if self.cancelled and event.name not in _AFTER_THE_COMMIT:
            raise _Cancelled


class InlineRunner:
    """Runs a job with `delta_core.jobs.run_job` in this process, task maps on threads.

    Args:
        directory: the directory for specification, result and state.
        storage_options: options of the table's store; kept only in memory.
    """

    name = "inline"

    def __init__(
        self,
        *,
        directory: RunDirectory,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._directory = directory
        self._storage_options = dict(storage_options or {})
        self._clock = clock
        self._sink: _Sink | None = None
        self._cancelled = False

    def run(self, spec: JobSpec, *, on_event: EventCallback) -> JobResult:
        """Run the job; see `Runner.run`."""
        directory = self._directory
        directory.write_spec(spec)
        state = RunState(job_id=spec.job_id, runner=self.name, started_ms=self._clock.now_ms())
        state = state.advance(RunPhase.RUNNING)
        directory.write_state(state)
        self._sink = sink = _Sink(on_event)
        sink.cancelled = self._cancelled
        context = JobContext(
            executor=InlineExecutor(),
            clock=self._clock,
            progress=sink,
            storage_options=self._storage_options,
        )
        phase, code = RunPhase.CANCELLED, "INTERRUPTED"
        try:
            result = run_job(spec, context)
            directory.write_result(result)
            require_success(result)
            phase, code = RunPhase.SUCCEEDED, ""
        except _Cancelled as error:
            code = JobCancelledError.code
            raise JobCancelledError(f"Job {spec.job_id} ({spec.kind}) was cancelled.") from error
        except CommitStateUnknownError as error:
            phase, code = RunPhase.UNKNOWN, error.code
            raise
        except DeltaError as error:
            phase, code = RunPhase.FAILED, error.code
            raise
        finally:
            directory.write_state(
                state.advance(
                    phase,
                    finished_ms=self._clock.now_ms(),
                    last_event=sink.last_event,
                    error_code=code or None,
                )
            )
        return result

    def cancel(self) -> None:
        """Stop the job at its next progress event that comes before its commit.

        A job that has committed continues to its end, so that its result records the commit.
        """
        self._cancelled = True
        if self._sink is not None:
            self._sink.cancelled = True
