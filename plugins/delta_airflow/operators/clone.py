"""The operator that clones a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_airflow.operators.planning import PlanningOperator
from delta_airflow.operators.rendered import (
    as_bool,
    as_location,
    as_locations,
    as_optional_int,
    as_optional_string,
)
from delta_core.errors import ConfigurationError


class DeltaCloneOperator(PlanningOperator):
    """Clones a table, at its newest or an earlier version, to `table_uri` in one commit.

    An existing clone is updated to the state of the source. Rows that were written to the clone itself are
    removed. An existing table that is not a clone of the source is never replaced.

    Args:
        source_uri: absolute path or URI of the table to clone (templated).
        shallow: True refers to the source's files instead of copying them (templated).
        version: the version of the source. Give `version`, `timestamp`, or neither for the newest version
            (templated).
        timestamp: ISO 8601; selects the version of the source that was current at this time (templated).
        allowed_root_uris: the locations where files of the source may be if it is a shallow clone itself; a
            list, or a template that renders to a list (templated).
        dry_run: True only plans (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *PlanningOperator.template_fields,
        "source_uri",
        "shallow",
        "version",
        "timestamp",
        "allowed_root_uris",
    )

    def __init__(
        self,
        *,
        source_uri: str,
        shallow: bool | str = False,
        version: int | str | None = None,
        timestamp: str | None = None,
        allowed_root_uris: Sequence[str] | str | None = None,
        dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source_uri = source_uri
        self.shallow = shallow
        self.version = version
        self.timestamp = timestamp
        self.allowed_root_uris = allowed_root_uris
        self.dry_run = dry_run

    def job_kind(self) -> str:
        return "clone"

    def job_params(self) -> Mapping[str, Any]:
        version = as_optional_int("version", self.version, minimum=0)
        timestamp = as_optional_string("timestamp", self.timestamp)
        if version is not None and timestamp is not None:
            raise ConfigurationError(
                "A clone takes either a version or a timestamp.",
                cause="Both are given.",
                fix="Leave one of them out.",
            )
        params: dict[str, Any] = {
            "source_uri": as_location("source_uri", self.source_uri),
            "shallow": as_bool("shallow", self.shallow) or None,
            "version": version,
            "timestamp": timestamp,
            "allowed_root_uris": as_locations("allowed_root_uris", self.allowed_root_uris) or None,
            "dry_run": self.plans_only() or None,
        }
        return {name: value for name, value in params.items() if value is not None}
