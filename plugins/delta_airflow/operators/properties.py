"""Table properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.planning import PlanningOperator
from delta_airflow.operators.rendered import as_rendered_strings, as_string_mapping
from delta_core.errors import ConfigurationError


class DeltaPropertiesOperator(PlanningOperator):
    """Sets table properties, and takes others back to their defaults. What is so already is not committed.

    Args:
        properties: properties to set, as a mapping; numbers and flags are written as tables hold them
            (templated).
        unset: properties to take back; a list, or a template that renders as one. One that the table does
            not set is ignored (templated).
        dry_run: True only reports what would change (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (*PlanningOperator.template_fields, "properties", "unset")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **PlanningOperator.template_fields_renderers,
        "properties": "json",
    }
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(
        self,
        *,
        properties: Mapping[str, Any] | str | None = None,
        unset: Sequence[str] | str | None = None,
        dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.properties = properties
        self.unset = unset
        self.dry_run = dry_run

    def job_kind(self) -> str:
        return "properties"

    def job_params(self) -> Mapping[str, Any]:
        wanted = as_string_mapping("properties", self.properties)
        unwanted = as_rendered_strings("unset", self.unset)
        if not (wanted or unwanted):
            raise ConfigurationError(
                "No property is to be set or unset", fix="Give properties, unset, or both"
            )
        params: dict[str, Any] = {"set": wanted, "unset": unwanted, "dry_run": self.plans_only()}
        return {name: value for name, value in params.items() if value}
