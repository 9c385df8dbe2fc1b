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
    """Waits until a table's newest change of data is fresh. Maintenance does not count as a change of data.

    Returns the version of that change, its time and its age. While the table does not exist, the sensor waits
    for it.

    Args:
        table_uri: absolute path or URI of the table (templated).
        max_age_minutes: the maximum age of the change (templated).
        conn_id: connection of type `deltaward` (templated).
        deferrable: True waits in the triggerer and holds no worker slot. The default is Airflow's
            `operators.default_deferrable`.
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
                "The argument max_age_minutes is empty after rendering.", fix="Give a number of minutes."
            )
        return DeltaFreshnessTrigger(
            table_uri=table_uri, max_age_seconds=minutes * 60, conn_id=conn_id, poll_seconds=poll_seconds
        )
