"""Bringing an earlier version back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_bool, as_optional_int, as_optional_text
from delta_core.errors import ConfigurationError


class DeltaRestoreOperator(DeltaTableOperator):
    """Plans, or with `dry_run=False` commits, a new version with an earlier version's content.

    Args:
        version: the version to restore; this or `timestamp` (templated).
        timestamp: ISO 8601; the version that was current then (templated).
        dry_run: True only plans; the plan, with files and bytes, is in the result (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    # The argument's value is kept under another name: BaseOperator has a method `dry_run`.
    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "version",
        "timestamp",
        "plan_only",
    )
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(
        self,
        *,
        version: int | str | None = None,
        timestamp: str | None = None,
        dry_run: bool | str = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.version = version
        self.timestamp = timestamp
        self.plan_only = dry_run

    def job_kind(self) -> str:
        return "restore"

    def job_params(self) -> Mapping[str, Any]:
        version = as_optional_int("version", self.version, minimum=0)
        timestamp = as_optional_text("timestamp", self.timestamp)
        if (version is None) == (timestamp is None):
            raise ConfigurationError(
                "A restore needs either a version or a timestamp",
                cause="both are given" if version is not None else "neither is given",
            )
        target: dict[str, Any] = {"version": version} if version is not None else {"timestamp": timestamp}
        return {**target, "dry_run": as_bool("dry_run", self.plan_only)}

    def commits(self) -> bool:
        return not as_bool("dry_run", self.plan_only)
