"""Checking a whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_bool


class DeltaFsckOperator(DeltaTableOperator):
    """Checks the newest version as a whole, or with `repair` takes files out of it that the store has lost.

    A check fails the task when something is wrong, and changes nothing. A repair loses the rows of the files
    that it takes out: they are lost already, and readers fail for them.

    Args:
        repair: True takes lost files out of the table, in one commit (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (*DeltaTableOperator.template_fields, "repair")
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(self, *, repair: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.repair = repair

    def job_kind(self) -> str:
        return "repair" if self._repairs() else "fsck"

    def job_params(self) -> Mapping[str, Any]:
        return {"dry_run": False} if self._repairs() else {}

    def commits(self) -> bool:
        return self._repairs()

    def _repairs(self) -> bool:
        return as_bool("repair", self.repair)
