"""The base class of operators with `dry_run`, which can plan without executing."""

from __future__ import annotations

from collections.abc import Sequence

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_bool


class PlanningOperator(DeltaTableOperator):
    """Runs a job that only plans when `dry_run` is true: it commits and deletes nothing."""

    template_fields: Sequence[str] = (*DeltaTableOperator.template_fields, "dry_run")

    # This hides a method of BaseOperator, which only renders templates and is never called.
    dry_run: bool | str  # type: ignore[assignment]

    @property
    def plan_only(self) -> bool | str:
        """`dry_run` under its former name as a template field."""
        return self.dry_run

    @plan_only.setter
    def plan_only(self, value: bool | str) -> None:
        self.dry_run = value

    def plans_only(self) -> bool:
        """The rendered value of `dry_run`.

        Raises:
            ConfigurationError: `dry_run` is not a boolean.
        """
        return as_bool("dry_run", self.dry_run)

    def commits(self) -> bool:
        return not self.plans_only()
