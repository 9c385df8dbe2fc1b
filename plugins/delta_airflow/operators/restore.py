"""The operator that restores an earlier version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.approval import approver_of
from delta_airflow.operators.job_summary import JobSummary
from delta_airflow.operators.planning import PlanningOperator
from delta_airflow.operators.rendered import as_optional_int, as_optional_string, as_string
from delta_core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Context

DIFFS = frozenset({"files", "rows"})


class DeltaRestoreOperator(PlanningOperator):
    """Plans, or with `dry_run=False` commits, a new version with the content of an earlier version.

    Args:
        version: the version to restore. Give either this or `timestamp` (templated).
        timestamp: ISO 8601; selects the version that was current at this time (templated).
        dry_run: True only plans. The plan, with files and bytes, is in the result, and a report for people is
            in the XCom under `markdown` (templated).
        diff: `files`, or `rows` for the exact difference in rows, which reads the added and removed files
            (templated).
        sample_rows: with `rows`: the number of lost and returned rows to show; the maximum and the default
            are 20. They are in the result, and some of them in the XCom (templated).
        expected_version: the version that the restore was planned for. The task fails if the table has a
            newer version (templated).
        approval_task_id: an upstream approval. The task fails unless it was approved. The approver is
            recorded in the provenance of the commit.
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *PlanningOperator.template_fields,
        "version",
        "timestamp",
        "diff",
        "sample_rows",
        "expected_version",
    )
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(
        self,
        *,
        version: int | str | None = None,
        timestamp: str | None = None,
        dry_run: bool | str = True,
        diff: str = "files",
        sample_rows: int | str | None = None,
        expected_version: int | str | None = None,
        approval_task_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.version = version
        self.timestamp = timestamp
        self.dry_run = dry_run
        self.diff = diff
        self.sample_rows = sample_rows
        self.expected_version = expected_version
        self.approval_task_id = approval_task_id

    def execute(self, context: Context) -> JobSummary:
        """Run the job, with the approver's name if there is an approval task.

        Raises:
            AirflowFailException: no approval is on record, or the job failed with a permanent error.
            DeltaError: the job failed with a retryable error.
        """
        if self.approval_task_id is not None:
            self.approver = approver_of(context["ti"].xcom_pull(task_ids=self.approval_task_id))
        return super().execute(context)

    def job_kind(self) -> str:
        return "restore"

    def job_params(self) -> Mapping[str, Any]:
        version = as_optional_int("version", self.version, minimum=0)
        timestamp = as_optional_string("timestamp", self.timestamp)
        if (version is None) == (timestamp is None):
            raise ConfigurationError(
                "A restore needs either a version or a timestamp.",
                cause="Both are given." if version is not None else "Neither is given.",
                fix="Give exactly one of them.",
            )
        target: dict[str, Any] = {"version": version} if version is not None else {"timestamp": timestamp}
        params = {**target, "dry_run": self.plans_only()}
        diff = as_string("diff", self.diff)
        if diff not in DIFFS:
            raise ConfigurationError(
                f"The value {diff!r} of diff is not valid.", fix=f"Use one of {', '.join(sorted(DIFFS))}."
            )
        if diff == "rows":
            params["diff"] = diff
            if (rows := as_optional_int("sample_rows", self.sample_rows, minimum=0)) is not None:
                params["sample_rows"] = rows
        expected = as_optional_int("expected_version", self.expected_version, minimum=0)
        if expected is not None:
            params["expected_version"] = expected
        return params
