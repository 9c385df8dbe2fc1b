"""The operator that converts a directory of Parquet files to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.operators.planning import PlanningOperator
from delta_airflow.operators.rendered import (
    as_bool,
    as_optional_string,
    as_string,
    as_string_mapping,
)
from delta_core.errors import ConfigurationError

STRATEGIES = ("hive", "directory")
IF_EXISTS = ("error", "ignore")


class DeltaConvertOperator(PlanningOperator):
    """Converts a directory of Parquet files to a table in place. One commit adds the files; no file is moved.

    Args:
        partition_by: the partition columns in the order of the directory levels, each with its type: a
            mapping such as `{"day": "date"}` (templated).
        partition_strategy: `hive` for directories `year=2026/month=1`, `directory` for `2026/1` (templated).
        table_name: the name of the table in its metadata (templated).
        description: the description of the table (templated).
        configuration: the properties of the table, as a mapping (templated).
        collect_stats: False leaves out the column statistics, with which readers skip files (templated).
        if_exists: `error`, or `ignore` to succeed if a table already exists (templated).
        dry_run: True only plans (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *PlanningOperator.template_fields,
        "partition_by",
        "partition_strategy",
        "table_name",
        "description",
        "configuration",
        "collect_stats",
        "if_exists",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **PlanningOperator.template_fields_renderers,
        "partition_by": "json",
        "configuration": "json",
    }

    def __init__(
        self,
        *,
        partition_by: Mapping[str, str] | str | None = None,
        partition_strategy: str = "hive",
        table_name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, Any] | str | None = None,
        collect_stats: bool | str = True,
        if_exists: str = "error",
        dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partition_by = partition_by
        self.partition_strategy = partition_strategy
        self.table_name = table_name
        self.description = description
        self.configuration = configuration
        self.collect_stats = collect_stats
        self.if_exists = if_exists
        self.dry_run = dry_run

    def job_kind(self) -> str:
        return "convert"

    def job_params(self) -> Mapping[str, Any]:
        types = as_string_mapping("partition_by", self.partition_by)
        params: dict[str, Any] = {
            "partition_by": [{"name": column, "type": type_} for column, type_ in types.items()] or None,
            "partition_strategy": _one_of("partition_strategy", self.partition_strategy, STRATEGIES),
            "name": as_optional_string("table_name", self.table_name),
            "description": as_optional_string("description", self.description),
            "configuration": as_string_mapping("configuration", self.configuration) or None,
            "collect_stats": as_bool("collect_stats", self.collect_stats),
            "if_exists": _one_of("if_exists", self.if_exists, IF_EXISTS),
            "dry_run": self.plans_only() or None,
        }
        return {name: value for name, value in params.items() if value is not None}


def _one_of(name: str, value: object, known: Sequence[str]) -> str:
    choice = as_string(name, value)
    if choice not in known:
        raise ConfigurationError(
            f"The value {choice!r} of {name} is not valid.", fix=f"Use one of {', '.join(known)}."
        )
    return choice
