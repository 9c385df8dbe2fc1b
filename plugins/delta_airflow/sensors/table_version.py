"""Waiting for a table's version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import conf

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.rendered import as_optional_int
from delta_airflow.sensors.condition import DeltaConditionSensor
from delta_airflow.triggers.table_version import DeltaTableVersionTrigger
from delta_core.errors import ConfigurationError


class DeltaTableVersionSensor(DeltaConditionSensor):
    """Waits until a table has a version. While the table does not exist, the sensor waits for it.

    Returns the table's latest version. Costs one listing of the log's tail per poke.

    Args:
        table_uri: absolute path or URI of the table (templated).
        version: wait for this version or a later one. Give either this or `newer_than` (templated).
        newer_than: wait for a version later than this one (templated).
        conn_id: connection of type `deltaward` (templated).
        deferrable: True waits in the triggerer and holds no worker slot. The default is Airflow's
            `operators.default_deferrable`.
        kwargs: those of Airflow's BaseSensorOperator.
    """

    template_fields: Sequence[str] = (*DeltaConditionSensor.template_fields, "version", "newer_than")

    def __init__(
        self,
        *,
        table_uri: str,
        version: int | str | None = None,
        newer_than: int | str | None = None,
        conn_id: str = DeltawardHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(table_uri=table_uri, conn_id=conn_id, deferrable=deferrable, **kwargs)
        self.version = version
        self.newer_than = newer_than

    def trigger(self, *, table_uri: str, conn_id: str, poll_seconds: float) -> DeltaTableVersionTrigger:
        return DeltaTableVersionTrigger(
            table_uri=table_uri,
            minimum_version=self.minimum_version(),
            conn_id=conn_id,
            poll_seconds=poll_seconds,
        )

    def return_value(self, found: Mapping[str, Any]) -> int:
        return int(found["version"])

    def minimum_version(self) -> int:
        """The lowest version that ends the wait, from the rendered arguments.

        Raises:
            ConfigurationError: not exactly one of `version` and `newer_than` is given, or its value is not a
                valid version.
        """
        version = as_optional_int("version", self.version, minimum=0)
        newer_than = as_optional_int("newer_than", self.newer_than, minimum=-1)
        if version is not None and newer_than is None:
            return version
        if newer_than is not None and version is None:
            return newer_than + 1
        raise ConfigurationError(
            "The sensor needs exactly one of version and newer_than.", fix="Give one of the two arguments."
        )
