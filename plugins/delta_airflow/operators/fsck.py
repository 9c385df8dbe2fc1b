"""The operator that checks a whole table and repairs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_bool, as_locations
from delta_core.errors import ConfigurationError


class DeltaFsckOperator(DeltaTableOperator):
    """Checks the newest version as a whole, or with `repair` removes data files that the store has lost.

    A check changes nothing, and fails the task if the table is damaged. A repair removes the missing files
    from the table. Their rows are already lost, and readers fail until the files are removed.

    Args:
        repair: True removes missing files from the table, in one commit (templated).
        allowed_root_uris: locations outside the table's root where files of a shallow clone may be; a list,
            or a template that renders to a list. Files elsewhere are not checked (templated).
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
                "A repair covers only the files under the table's own root.",
                cause="The argument allowed_root_uris is given.",
                fix="Leave allowed_root_uris out, or check without repair.",
            )
        return {"dry_run": False}

    def commits(self) -> bool:
        return self._repairs()

    def _repairs(self) -> bool:
        return as_bool("repair", self.repair)
