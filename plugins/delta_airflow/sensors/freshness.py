"""Waiting for fresh data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import conf

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.rendered import as_optional_float
from delta_airflow.sensors.condition import DeltaConditionSensor
from delta_airflow.triggers.freshness import DeltaFreshnessTrigger
from delta_core.errors import ConfigurationError


class DeltaFreshnessSensor(DeltaConditionSensor):
    """Waits until a table's newest change of data is young. Maintenance changes no data.

    Returns the version that changed it, its time, and its age. A table that does not exist yet is waited for.

    Args:
        table_uri: absolute path or URI of the table (templated).
        max_age_minutes: how old the change may be (templated).
        conn_id: connection of type `deltaward` (templated).
        deferrable: wait in the triggerer, without a worker slot; Airflow's `operators.default_deferrable`
            unless given.
        kwargs: those of Airflow's BaseSensorOperator.
    """

    template_fields: Sequence[str] = (*DeltaConditionSensor.template_fields, "max_age_minutes")

    def __init__(
        self,
        *,
        table_uri: str,
        max_age_minutes: float | str,
        conn_id: str = DeltawardHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(table_uri=table_uri, conn_id=conn_id, deferrable=deferrable, **kwargs)
        self.max_age_minutes = max_age_minutes

    def trigger(self, *, table_uri: str, conn_id: str, poll_seconds: float) -> DeltaFreshnessTrigger:
        minutes = as_optional_float("max_age_minutes", self.max_age_minutes, minimum=0)
        if minutes is None:
            raise ConfigurationError(
                "The max_age_minutes are empty after rendering", fix="Give a number of minutes"
            )
        return DeltaFreshnessTrigger(
            table_uri=table_uri, max_age_seconds=minutes * 60, conn_id=conn_id, poll_seconds=poll_seconds
        )
