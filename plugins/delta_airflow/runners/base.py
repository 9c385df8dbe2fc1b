"""The interface of runners: run one JobSpec to its end, and stop it on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from delta_airflow.errors import JobLeaseHeldError, TransientJobFailedError
from delta_core.errors import CommitStateUnknownError, JobFailedError
from delta_core.execution.progress import ProgressEvent
from delta_core.jobs import JobErrorInfo, JobResult, JobSpec, JobStatus

EventCallback = Callable[[ProgressEvent], None]
"""Receives each progress event of the job, in order. It must not raise an error."""


class Runner(Protocol):
    """Runs one job on one engine. A runner is used once."""

    def run(self, spec: JobSpec, *, on_event: EventCallback) -> JobResult:
        """Run the job and wait for its end.

        Returns:
            The result, always of status `succeeded`.

        Raises:
            JobFailedError: the job failed; `retryable` shows whether a retry can succeed.
            CommitStateUnknownError: the commit of the job may or may not have succeeded.
            JobCancelledError: `cancel` was called.
        """
        ...

    def cancel(self) -> None:
        """Stop the job. Can be called from a signal handler, from another thread, and repeatedly."""
        ...


def require_success(result: JobResult) -> JobResult:
    """Return the result if its status is `succeeded`, else raise the matching error.

    Raises:
        CommitStateUnknownError: status `unknown`.
        JobLeaseHeldError: status `failed`, because another job holds the lease.
        TransientJobFailedError: status `failed` with another retryable error.
        JobFailedError: status `failed` otherwise.
    """
    if result.status is JobStatus.SUCCEEDED:
        return result
    error = result.error
    cause = f"{error.code}: {error.message}" if error else "The result contains no error"
    if result.status is JobStatus.UNKNOWN:
        raise CommitStateUnknownError(
            f"It is not known whether the job {result.job_id} ({result.kind}) committed.",
            cause=cause,
            fix="Look for the job's transaction id in the table's history before you clear the task.",
        )
    raise _kind_of(error)(f"Job {result.job_id} ({result.kind}) failed.", cause=cause)


def _kind_of(error: JobErrorInfo | None) -> type[JobFailedError]:
    """The class of the error to raise for a failed job."""
    if error is None or not error.retryable:
        return JobFailedError
    return JobLeaseHeldError if error.code == JobLeaseHeldError.code else TransientJobFailedError
