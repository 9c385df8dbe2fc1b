"""Deletion of log files that no retained version needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.planning import PlanningOperator


class DeltaCleanupOperator(PlanningOperator):
    """Lists, or with `dry_run=False` deletes, the log files that no version within retention needs.

    Args:
        dry_run: True only plans. The plan is in the result (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(self, *, dry_run: bool | str = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dry_run = dry_run

    def job_kind(self) -> str:
        return "cleanup_metadata"

    def job_params(self) -> Mapping[str, Any]:
        return {"dry_run": self.plans_only()}

    def commits(self) -> bool:
        return False
