"""Waiting for a table's version in the triggerer."""

from __future__ import annotations

from typing import Any

from delta_airflow.conditions.version import VersionCondition
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.triggers.condition import DeltaConditionTrigger
from delta_core.errors import ConfigurationError


class DeltaTableVersionTrigger(DeltaConditionTrigger):
    """Fires once when the table has a version of at least `minimum_version`: `{"version": N}`.

    Args:
        table_uri: canonical URI of the table.
        minimum_version: the version to wait for, or any later one.
        conn_id: connection of type `deltaward`.
        poll_seconds: the time between two listings.
    """

    def __init__(self, *, table_uri: str, minimum_version: int, conn_id: str, poll_seconds: float) -> None:
        super().__init__(table_uri=table_uri, conn_id=conn_id, poll_seconds=poll_seconds)
        if minimum_version < 0:
            raise ConfigurationError(
                f"The argument `minimum_version` of the trigger must be at least 0, not {minimum_version}.",
                fix="Give a version of at least 0.",
            )
        self.minimum_version = minimum_version

    def condition_arguments(self) -> dict[str, Any]:
        return {"minimum_version": self.minimum_version}

    def open_condition(self, hook: DeltawardHook, table_uri: str) -> VersionCondition:
        options = hook.storage_options(table_uri)
        return VersionCondition(table_uri, self.minimum_version, storage_options=options)
