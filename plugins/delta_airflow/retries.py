"""The retry policy of tasks: conflicts and storage errors are retried, bad data never is."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryDecision, RetryPolicy

from delta_core.errors import DeltaError, LeaseHeldError

if TYPE_CHECKING:
    from airflow.sdk import Context

LEASE_DELAY = timedelta(minutes=2)
"""The delay before a retry if another job holds the lease. A dead job's lease expires after 61 seconds."""


class DeltaRetryPolicy(RetryPolicy):
    """Decides by `retryable` of a DeltaError: a retryable error is retried, any other fails the task.

    For errors that are not a DeltaError, the task's `retries` decide. The operators raise
    AirflowFailException for permanent errors, for which Airflow does not consult a policy. This policy
    applies the same rule to your own tasks that open tables.
    """

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Context | None = None,
    ) -> RetryDecision:
        """Decide whether the task is retried; see `RetryPolicy`."""
        if not isinstance(exception, DeltaError):
            return RetryDecision.default()
        if not exception.retryable:
            return RetryDecision.fail(f"{exception.code}: The error is permanent, so a retry cannot succeed.")
        delay = LEASE_DELAY if exception.code == LeaseHeldError.code else None
        return RetryDecision.retry(
            delay, f"{exception.code}: The error is transient, so a retry can succeed."
        )

    def serialize(self) -> dict[str, Any]:
        """The serialized policy. It has no settings."""
        return {"__type": type(self).__name__}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> DeltaRetryPolicy:
        """Create the policy from its serialized form."""
        return cls()
