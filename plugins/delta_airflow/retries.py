"""Which failures of a task are tried again: conflicts and storage that fails, never data that is bad."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryDecision, RetryPolicy

from delta_core.errors import DeltaError, LeaseHeldError

if TYPE_CHECKING:
    from airflow.sdk import Context

LEASE_DELAY = timedelta(minutes=2)
"""A lease of a job that died lasts a minute and a second more."""


class DeltaRetryPolicy(RetryPolicy):
    """Goes by what an error says of itself: one that can pass is tried again, any other fails the task.

    Errors that are none of Deltaward's are left to the task's `retries`. Operators raise AirflowFailException
    for what a retry cannot help, of which Airflow asks no policy; this one does the same for tasks of your
    own that open tables.
    """

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Context | None = None,
    ) -> RetryDecision:
        """Decide; see `RetryPolicy`."""
        if not isinstance(exception, DeltaError):
            return RetryDecision.default()
        if not exception.retryable:
            return RetryDecision.fail(f"{exception.code}: trying again cannot help")
        delay = LEASE_DELAY if isinstance(exception, LeaseHeldError) else None
        return RetryDecision.retry(delay, f"{exception.code}: this can pass")

    def serialize(self) -> dict[str, Any]:
        """The policy has nothing to set."""
        return {"__type": type(self).__name__}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> DeltaRetryPolicy:
        """The policy."""
        return cls()
