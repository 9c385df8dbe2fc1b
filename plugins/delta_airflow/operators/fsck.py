"""Checking a whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_bool, as_locations
from delta_core.errors import ConfigurationError


class DeltaFsckOperator(DeltaTableOperator):
    """Checks the newest version as a whole, or with `repair` takes files out of it that the store has lost.

    A check fails the task when something is wrong, and changes nothing. A repair loses the rows of the files
    that it takes out: they are lost already, and readers fail for them.

    Args:
        repair: True takes lost files out of the table, in one commit (templated).
        allowed_root_uris: where files of a shallow clone may lie beyond its own root; a list, or a template
            that renders as one. Files elsewhere are left alone (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "repair",
        "allowed_root_uris",
    )
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(
        self,
        *,
        repair: bool | str = False,
        allowed_root_uris: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.repair = repair
        self.allowed_root_uris = allowed_root_uris

    def job_kind(self) -> str:
        return "repair" if self._repairs() else "verify"

    def job_params(self) -> Mapping[str, Any]:
        roots = as_locations("allowed_root_uris", self.allowed_root_uris)
        if not self._repairs():
            return {"allowed_root_uris": roots} if roots else {}
        if roots:
            raise ConfigurationError(
                "A repair looks at the table's own files alone",
                cause="allowed_root_uris is given",
                fix="Leave it out, or check without repair",
            )
        return {"dry_run": False}

    def commits(self) -> bool:
        return self._repairs()

    def _repairs(self) -> bool:
        return as_bool("repair", self.repair)
