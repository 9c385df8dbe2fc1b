"""What every runner does: run one JobSpec to its end, and stop it when asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from delta_airflow.errors import TransientJobFailedError
from delta_core.errors import CommitStateUnknownError, JobFailedError
from delta_core.execution.progress import ProgressEvent
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec

EventCallback = Callable[[ProgressEvent], None]
"""Receives each progress event of the job, in order; must not raise."""


class Runner(Protocol):
    """Runs one job on one engine. A runner is used once."""

    def run(self, spec: JobSpec, *, on_event: EventCallback) -> JobResult:
        """Run the job and wait for its end.

        Returns:
            The result, always of status `succeeded`.

        Raises:
            JobFailedError: the job failed; `retryable` says whether running it again can help.
            CommitStateUnknownError: whether its commit landed could not be told.
            JobCancelledError: `cancel` was called.
        """
        ...

    def cancel(self) -> None:
        """Stop the job. Safe from a signal handler and from another thread; idempotent."""
        ...


def require_success(result: JobResult) -> JobResult:
    """Return `result` when it succeeded, else raise the error that it stands for.

    Raises:
        CommitStateUnknownError: status `unknown`.
        TransientJobFailedError: status `failed` with a retryable error.
        JobFailedError: status `failed` otherwise.
    """
    if result.status is JobStatus.SUCCEEDED:
        return result
    error = result.error
    cause = f"{error.code}: {error.message}" if error else "the result names no error"
    if result.status is JobStatus.UNKNOWN:
        raise CommitStateUnknownError(
            f"Whether job {result.job_id} ({result.kind}) committed is not known",
            cause=cause,
            fix="Compare the table's history with the job's transaction id before clearing the task",
        )
    kind = TransientJobFailedError if error is not None and error.retryable else JobFailedError
    raise kind(f"Job {result.job_id} ({result.kind}) failed", cause=cause)
