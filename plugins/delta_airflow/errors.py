"""How a handed-over job can fail, beside what `delta_core.errors` names.

`retryable` decides what an operator raises: a plain error, which Airflow retries, or
AirflowFailException, which it does not.
"""

from __future__ import annotations

from delta_core.errors import JobError, JobFailedError


class TransientJobFailedError(JobFailedError):
    """The job failed with an error that running it again can get past."""

    code = "JOB_FAILED_TRANSIENT"
    retryable = True


class DriverLostError(JobFailedError):
    """The driver ended without a result that can be trusted.

    The job's idempotency key makes running it again safe, whatever the lost driver committed.
    """

    code = "DRIVER_LOST"
    retryable = True


class JobDeadlineError(JobFailedError):
    """The job did not end before its deadline and was stopped."""

    code = "JOB_DEADLINE_EXCEEDED"
    retryable = True


class JobCancelledError(JobError):
    """The job was stopped because its task was."""

    code = "JOB_CANCELLED"
    retryable = True
