"""Deletion of files that no version within retention needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_bool, as_optional_float


class DeltaVacuumOperator(DeltaTableOperator):
    """Lists, or with `dry_run=False` deletes, the files that the table needs no more.

    Args:
        retention_hours: files removed from the table longer ago may go; None is the table's own setting.
            What is shorter than the table's protected retention is refused (templated).
        dry_run: True only plans; the plan, with bytes and reason per file, is in the result (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    # The argument's value is kept under another name: BaseOperator has a method `dry_run`.
    template_fields: Sequence[str] = (*DeltaTableOperator.template_fields, "retention_hours", "plan_only")
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(
        self, *, retention_hours: float | str | None = None, dry_run: bool | str = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.retention_hours = retention_hours
        self.plan_only = dry_run

    def job_kind(self) -> str:
        return "vacuum"

    def job_params(self) -> Mapping[str, Any]:
        params: dict[str, Any] = {"dry_run": as_bool("dry_run", self.plan_only)}
        hours = as_optional_float("retention_hours", self.retention_hours, minimum=0)
        if hours is not None:
            params["retention_hours"] = hours
        return params

    def commits(self) -> bool:
        return not as_bool("dry_run", self.plan_only)
