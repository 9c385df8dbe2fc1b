"""Waiting for a table's version in the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.table_versions import latest_version_from
from delta_core.errors import ConfigurationError, DeltaError


class DeltaTableVersionTrigger(BaseTrigger):
    """Fires once when the table has a version of at least `minimum_version`.

    The listing runs on a thread, so that a slow store does not hold up other triggers. An error of the
    store that can pass is waited out; any other ends the wait. The deferred task's timeout is the limit.

    Args:
        table_uri: canonical URI of the table.
        minimum_version: the version to wait for, or any later one.
        conn_id: connection of type `deltaward`; storage options are taken from it when the trigger runs.
        poll_seconds: between two listings.
    """

    def __init__(self, *, table_uri: str, minimum_version: int, conn_id: str, poll_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if minimum_version < 0 or not poll_seconds > 0:
            raise ConfigurationError(
                "The trigger's arguments are not valid",
                fix="Give a version of at least 0 and a number of seconds greater than 0",
            )
        self.table_uri = table_uri
        self.minimum_version = minimum_version
        self.conn_id = conn_id
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "table_uri": self.table_uri,
                "minimum_version": self.minimum_version,
                "conn_id": self.conn_id,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event: `{"version": N}`, or `{"error": {...}}`."""
        try:
            hook = await DeltawardHook.aload(self.conn_id)
            version = await self._wait(hook)
        except DeltaError as error:
            yield _event(error={"code": error.code, "message": str(error), "retryable": error.retryable})
        else:
            yield _event(version=version)

    async def _wait(self, hook: DeltawardHook) -> int:
        table_uri = await asyncio.to_thread(hook.table_uri, self.table_uri)
        while True:
            try:
                version = await asyncio.to_thread(
                    latest_version_from,
                    table_uri,
                    self.minimum_version,
                    storage_options=hook.settings.storage_options,
                )
            except DeltaError as error:
                if not error.retryable:
                    raise
                self.log.warning("The table's log cannot be listed: %s", error)
                version = None
            if version is not None:
                return version
            await asyncio.sleep(self.poll_seconds)


def _event(**payload: Any) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
