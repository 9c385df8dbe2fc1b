"""The base class of the triggers: waiting in the triggerer for a condition on a table."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from delta_airflow.conditions.base import TableCondition
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.triggers.threads import in_thread
from delta_core.errors import ConfigurationError, DeltaError, StorePermissionError


class DeltaConditionTrigger(BaseTrigger):
    """Fires once: with the result of a condition on a table, or with `{"error": {...}}`.

    The connection is read and the store is opened once, and again after an error, so that rotated credentials
    take effect. A transient error of the store does not end the wait; any other error does. The timeout of
    the deferred task limits the wait.

    Args:
        table_uri: canonical URI of the table.
        conn_id: connection of type `deltaward`; its secrets are read when the trigger runs.
        poll_seconds: the time between two checks.
    """

    def __init__(self, *, table_uri: str, conn_id: str, poll_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if not poll_seconds > 0:
            raise ConfigurationError(
                f"The argument `poll_seconds` of the trigger must be greater than 0, not {poll_seconds}.",
                fix="Give a number of seconds greater than 0.",
            )
        self.table_uri = table_uri
        self.conn_id = conn_id
        self.poll_seconds = poll_seconds

    @abstractmethod
    def open_condition(self, hook: DeltawardHook, table_uri: str) -> TableCondition:
        """The condition with its store open. Runs on a thread of the trigger pool."""

    @abstractmethod
    def condition_arguments(self) -> dict[str, Any]:
        """The arguments of this condition, under the names that the trigger's constructor takes."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "table_uri": self.table_uri,
                **self.condition_arguments(),
                "conn_id": self.conn_id,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event."""
        try:
            found = await self._wait()
        except DeltaError as error:
            details = {"code": error.code, "message": str(error), "retryable": error.retryable}
            yield TriggerEvent({"error": details})  # type: ignore[no-untyped-call]
        else:
            yield TriggerEvent(found)  # type: ignore[no-untyped-call]

    async def _wait(self) -> dict[str, Any]:
        condition: TableCondition | None = None
        while True:
            opened_before = condition is not None
            try:
                if condition is None:
                    condition = await self._open()
                found = await in_thread(condition.check)
            except DeltaError as error:
                # Credentials may have been rotated.
                if not error.retryable and not (opened_before and isinstance(error, StorePermissionError)):
                    raise
                self.log.warning("The table cannot be read: %s", error)
                condition, found = None, None
            if found is not None:
                return found
            await asyncio.sleep(self.poll_seconds)

    async def _open(self) -> TableCondition:
        hook = await DeltawardHook.aload(self.conn_id)

        def opened() -> TableCondition:
            return self.open_condition(hook, hook.table_uri(self.table_uri))

        return await in_thread(opened)
