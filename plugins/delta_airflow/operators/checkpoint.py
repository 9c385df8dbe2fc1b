"""The operator that writes a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator


class DeltaCheckpointOperator(DeltaTableOperator):
    """Writes a checkpoint of the table's latest version, so that readers need not replay the log.

    Args:
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def job_kind(self) -> str:
        return "checkpoint"

    def job_params(self) -> Mapping[str, Any]:
        return {}

    def commits(self) -> bool:
        return False
