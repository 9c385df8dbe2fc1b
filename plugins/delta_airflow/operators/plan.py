"""The operator that plans which maintenance a table needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.job_summary import JobSummary
from delta_airflow.operators.rendered import as_bool, as_json_object, as_locations, as_optional_string
from delta_core.jobs import JobResult

if TYPE_CHECKING:
    from airflow.sdk import Context

SEEN_KEY = "seen"
"""The XCom key under which a task stores what it read of the table, for its next run."""


class DeltaPlanOperator(DeltaTableOperator):
    """Reports the health of a table, which maintenance is due, and why. Changes nothing.

    Each run stores a summary of the table in XCom. The next run of the task reads only the changes since
    then. For a table without changes this costs one listing of the log.

    Args:
        rules: the rules for when each verb is due: a resolved policy, as a mapping. None uses the defaults
            (templated).
        list_vacuum: True also lists the store for files that a vacuum would delete (templated).
        remember: False reads the whole table, regardless of the last run (templated).
        allowed_root_uris: locations outside the table's root where files of a shallow clone may be; a list,
            or a template that renders to a list. Files elsewhere are ignored (templated).
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
        """Plan, starting from the stored summary of the last run.

        Raises:
            AirflowFailException: the job failed with a permanent error.
            DeltaError: the job failed with a retryable error.
        """
        self._seen = self._last_seen(context)
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

    def _last_seen(self, context: Context) -> Mapping[str, Any] | None:
        """The summary that the task's last run stored for this table.

        None if the last run with this map index was for a different table.
        """
        instance = context["ti"]
        stored = instance.xcom_pull(
            task_ids=instance.task_id, key=SEEN_KEY, map_indexes=instance.map_index, include_prior_dates=True
        )
        if not isinstance(stored, Mapping) or stored.get("table_uri") != self.table_uri:
            return None
        seen = stored.get("seen")
        return seen if isinstance(seen, Mapping) else None

    def _annotate_outlets(self, context: Context, result: JobResult) -> None:
        super()._annotate_outlets(context, result)
        if (seen := result.output.get("seen")) is not None:
            context["ti"].xcom_push(key=SEEN_KEY, value={"table_uri": self.table_uri, "seen": seen})
