"""Asking a table which maintenance is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.job_summary import JobSummary
from delta_airflow.operators.rendered import as_bool, as_json_object, as_locations, as_optional_string
from delta_core.jobs.job_result import JobResult

if TYPE_CHECKING:
    from airflow.sdk import Context

SEEN_KEY = "seen"
"""The XCom in which a task keeps what it saw, for its next run."""


class DeltaPlanOperator(DeltaTableOperator):
    """Reports how healthy a table is, which maintenance is due, and why. Changes nothing.

    What a run saw is kept in XCom, and the next run of the task reads only what changed since: of a table
    that did not change, that is one listing of the log.

    Args:
        rules: when each verb is due: a resolved policy, as a mapping; None goes by the defaults (templated).
        list_vacuum: True also lists the store for what a vacuum would delete (templated).
        remember: False looks at the whole table whatever the last run saw (templated).
        allowed_root_uris: where files of a shallow clone may lie beyond its own root; a list, or a template
            that renders as one. Files elsewhere are left alone (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "rules",
        "list_vacuum",
        "remember",
        "allowed_root_uris",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DeltaTableOperator.template_fields_renderers,
        "rules": "json",
    }
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(
        self,
        *,
        rules: Mapping[str, Any] | str | None = None,
        list_vacuum: bool | str = False,
        remember: bool | str = True,
        allowed_root_uris: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = rules
        self.list_vacuum = list_vacuum
        self.remember = remember
        self.allowed_root_uris = allowed_root_uris
        self._seen: Mapping[str, Any] | None = None

    def execute(self, context: Context) -> JobSummary:
        """Plan, from what the last run saw.

        Raises:
            AirflowFailException: the job failed in a way that running it again cannot help.
            DeltaError: the job failed and may be retried.
        """
        self._seen = self._last_look(context)
        return super().execute(context)

    def job_kind(self) -> str:
        return "plan"

    def job_params(self) -> Mapping[str, Any]:
        rules = self.rules if not isinstance(self.rules, str) else as_optional_string("rules", self.rules)
        params: dict[str, Any] = {
            "rules": as_json_object("rules", rules) if rules is not None else None,
            "list_vacuum": as_bool("list_vacuum", self.list_vacuum) or None,
            "allowed_root_uris": as_locations("allowed_root_uris", self.allowed_root_uris) or None,
            "since": self._seen if as_bool("remember", self.remember) else None,
        }
        return {name: value for name, value in params.items() if value is not None}

    def commits(self) -> bool:
        return False

    def _last_look(self, context: Context) -> Mapping[str, Any] | None:
        """What the task's last run saw of this table; the map index may have been another table's then."""
        instance = context["ti"]
        kept = instance.xcom_pull(
            task_ids=instance.task_id, key=SEEN_KEY, map_indexes=instance.map_index, include_prior_dates=True
        )
        if not isinstance(kept, Mapping) or kept.get("table_uri") != self.table_uri:
            return None
        seen = kept.get("seen")
        return seen if isinstance(seen, Mapping) else None

    def _annotate_outlets(self, context: Context, result: JobResult) -> None:
        super()._annotate_outlets(context, result)
        if (seen := result.output.get("seen")) is not None:
            context["ti"].xcom_push(key=SEEN_KEY, value={"table_uri": self.table_uri, "seen": seen})
