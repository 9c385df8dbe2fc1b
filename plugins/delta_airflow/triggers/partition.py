"""Waiting for a partition in the triggerer."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.triggers.condition import DeltaConditionTrigger

if TYPE_CHECKING:
    from delta_airflow.conditions.partition import PartitionCondition


class DeltaPartitionTrigger(DeltaConditionTrigger):
    """Fires once when the table has a partition: `{"version": N, "files": N, "rows": N or None}`.

    Args:
        table_uri: canonical URI of the table.
        partition: partition columns and their values.
        min_files: the minimum number of live files.
        min_rows: the minimum number of rows; None sets no minimum.
        conn_id: connection of type `deltaward`.
        poll_seconds: the time between two checks.
    """

    def __init__(
        self,
        *,
        table_uri: str,
        partition: Mapping[str, str],
        min_files: int,
        min_rows: int | None,
        conn_id: str,
        poll_seconds: float,
    ) -> None:
        super().__init__(table_uri=table_uri, conn_id=conn_id, poll_seconds=poll_seconds)
        self.partition = dict(partition)
        self.min_files = min_files
        self.min_rows = min_rows

    def condition_arguments(self) -> dict[str, Any]:
        return {"partition": self.partition, "min_files": self.min_files, "min_rows": self.min_rows}

    def open_condition(self, hook: DeltawardHook, table_uri: str) -> PartitionCondition:
        # Imported here, because only a running trigger needs pyarrow; parsing a DAG does not.
        module = importlib.import_module("delta_airflow.conditions.partition")
        condition: PartitionCondition = module.PartitionCondition(
            table_uri,
            self.partition,
            min_files=self.min_files,
            min_rows=self.min_rows,
            storage_options=hook.storage_options(table_uri),
        )
        return condition
