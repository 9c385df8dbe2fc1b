"""Waiting for fresh data in the triggerer."""

from __future__ import annotations

from typing import Any

from delta_airflow.conditions.freshness import FreshnessCondition
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.triggers.condition import DeltaConditionTrigger


class DeltaFreshnessTrigger(DeltaConditionTrigger):
    """Fires once when the newest change of data is fresh: `{"version", "timestamp_ms", "age_seconds"}`.

    Args:
        table_uri: canonical URI of the table.
        max_age_seconds: the maximum age of the change.
        conn_id: connection of type `deltaward`.
        poll_seconds: the time between two checks.
    """

    def __init__(self, *, table_uri: str, max_age_seconds: float, conn_id: str, poll_seconds: float) -> None:
        super().__init__(table_uri=table_uri, conn_id=conn_id, poll_seconds=poll_seconds)
        self.max_age_seconds = max_age_seconds

    def condition_arguments(self) -> dict[str, Any]:
        return {"max_age_seconds": self.max_age_seconds}

    def open_condition(self, hook: DeltawardHook, table_uri: str) -> FreshnessCondition:
        options = hook.storage_options(table_uri)
        return FreshnessCondition(table_uri, self.max_age_seconds, storage_options=options)
