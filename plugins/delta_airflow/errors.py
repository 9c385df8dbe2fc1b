"""Errors of jobs that a runner started, in addition to `delta_core.errors`.

`retryable` decides what an operator raises. True: the error itself, which Airflow retries. False:
AirflowFailException, which Airflow does not retry.
"""

from __future__ import annotations

from delta_core.errors import JobError, JobFailedError, LeaseHeldError


class TransientJobFailedError(JobFailedError):
    """The job failed with an error that a retry can overcome."""

    code = "JOB_FAILED_TRANSIENT"
    retryable = True


class JobLeaseHeldError(TransientJobFailedError):
    """The job did not start its work, because another job holds its lease."""

    code = LeaseHeldError.code


class DriverLostError(JobFailedError):
    """The driver ended without a trustworthy result.

    A retry is safe even if the lost driver committed: the job's idempotency key prevents that the work is
    applied twice.
    """

    code = "DRIVER_LOST"
    retryable = True


class JobDeadlineError(JobFailedError):
    """The job did not end before its deadline and was stopped."""

    code = "JOB_DEADLINE_EXCEEDED"
    retryable = True


class JobCancelledError(JobError):
    """The job was stopped because its task was stopped."""

    code = "JOB_CANCELLED"
    retryable = True
