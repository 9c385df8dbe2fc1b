"""Waiting for a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow.sdk import conf

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.rendered import as_optional_int, as_string_mapping
from delta_airflow.sensors.condition import DeltaConditionSensor
from delta_airflow.triggers.partition import DeltaPartitionTrigger
from delta_core.errors import ConfigurationError


class DeltaPartitionSensor(DeltaConditionSensor):
    """Waits until a table has a partition. While the table does not exist, the sensor waits for it.

    Returns the version that has the partition and the number of its files. If `min_rows` is given, it also
    returns the number of rows.

    Args:
        table_uri: absolute path or URI of the table (templated).
        partition: partition columns and their values, such as `{"day": "{{ ds }}"}`. A subset of the
            partition columns is enough (templated).
        min_files: the minimum number of live files (templated).
        min_rows: the minimum number of rows, without deleted rows; None sets no minimum (templated).
        conn_id: connection of type `deltaward` (templated).
        deferrable: True waits in the triggerer and holds no worker slot. The default is Airflow's
            `operators.default_deferrable`.
        kwargs: those of Airflow's BaseSensorOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaConditionSensor.template_fields,
        "partition",
        "min_files",
        "min_rows",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"partition": "json"}

    def __init__(
        self,
        *,
        table_uri: str,
        partition: Mapping[str, Any] | str,
        min_files: int | str = 1,
        min_rows: int | str | None = None,
        conn_id: str = DeltawardHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(table_uri=table_uri, conn_id=conn_id, deferrable=deferrable, **kwargs)
        self.partition = partition
        self.min_files = min_files
        self.min_rows = min_rows

    def trigger(self, *, table_uri: str, conn_id: str, poll_seconds: float) -> DeltaPartitionTrigger:
        partition = as_string_mapping("partition", self.partition)
        if not partition:
            raise ConfigurationError(
                "The sensor names no partition.",
                fix='Give the partition columns and their values, such as {"day": "{{ ds }}"}.',
            )
        return DeltaPartitionTrigger(
            table_uri=table_uri,
            partition=partition,
            min_files=as_optional_int("min_files", self.min_files, minimum=1) or 1,
            min_rows=as_optional_int("min_rows", self.min_rows, minimum=1),
            conn_id=conn_id,
            poll_seconds=poll_seconds,
        )
