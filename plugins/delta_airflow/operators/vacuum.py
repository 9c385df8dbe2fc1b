"""Deletion of files that no version within retention needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.planning import PlanningOperator
from delta_airflow.operators.rendered import as_optional_float


class DeltaVacuumOperator(PlanningOperator):
    """Lists, or with `dry_run=False` deletes, the files that the table no longer needs.

    Args:
        retention_hours: files that were removed from the table before this time may be deleted. None uses
            the table's setting. A value below the table's protected retention is refused (templated).
        dry_run: True only plans. The plan, with size and reason per file, is in the result (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (*PlanningOperator.template_fields, "retention_hours")
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(
        self, *, retention_hours: float | str | None = None, dry_run: bool | str = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.retention_hours = retention_hours
        self.dry_run = dry_run

    def job_kind(self) -> str:
        return "vacuum"

    def job_params(self) -> Mapping[str, Any]:
        params: dict[str, Any] = {"dry_run": self.plans_only()}
        hours = as_optional_float("retention_hours", self.retention_hours, minimum=0)
        if hours is not None:
            params["retention_hours"] = hours
        return params
