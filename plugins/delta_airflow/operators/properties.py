"""The operator that sets and unsets table properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.planning import PlanningOperator
from delta_airflow.operators.rendered import as_rendered_strings, as_string_mapping
from delta_core.errors import ConfigurationError


class DeltaPropertiesOperator(PlanningOperator):
    """Sets some table properties and resets others to their defaults. Without a change it makes no commit.

    Args:
        properties: properties to set, as a mapping. Numbers and booleans are converted to the strings that
            the table stores (templated).
        unset: properties to reset; a list, or a template that renders to a list. Properties that the table
            does not set are ignored (templated).
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
        to_set = as_string_mapping("properties", self.properties)
        to_unset = as_rendered_strings("unset", self.unset)
        if not (to_set or to_unset):
            raise ConfigurationError(
                "The operator has no properties to set or unset.", fix="Give properties, unset, or both."
            )
        params: dict[str, Any] = {"set": to_set, "unset": to_unset, "dry_run": self.plans_only()}
        return {name: value for name, value in params.items() if value}
