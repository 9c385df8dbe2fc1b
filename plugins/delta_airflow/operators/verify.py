"""The operator that verifies the rows of commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.job_summary import JobSummary
from delta_airflow.operators.rendered import as_locations, as_versions
from delta_airflow.operators.summary import summarize
from delta_core.errors import ConfigurationError
from delta_core.jobs import JobResult, JobStatus

if TYPE_CHECKING:
    from airflow.sdk import Context

NOTHING_TO_VERIFY = "no commit to verify; nothing was done"


class DeltaVerifyOperator(DeltaTableOperator):
    """Compares the rows that each commit removed and added. Later commits of other writers have no effect.

    Without a commit it does nothing and succeeds, so that it can follow a task that had nothing to do.

    Args:
        commits: the versions that upstream tasks committed: numbers, results of these tasks, or templates of
            either. None and the results of skipped tasks are ignored (templated).
        allowed_root_uris: locations outside the table's root where files of a shallow clone may be; a list,
            or a template that renders to a list. Files elsewhere are not read (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "commits_to_verify",
        "allowed_root_uris",
    )
    default_runner: ClassVar[RunnerName | None] = RunnerName.INLINE

    def __init__(
        self,
        *,
        commits: Sequence[Any] | Mapping[str, Any] | int | str | None,
        allowed_root_uris: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # Not named `commits`, because that is a method of the base class.
        self.commits_to_verify = commits
        self.allowed_root_uris = allowed_root_uris

    def execute(self, context: Context) -> JobSummary:
        """Verify the commits, if there are any.

        Raises:
            AirflowFailException: rows differ, a file is missing, or an argument is not valid.
            DeltaError: the job failed with a retryable error.
        """
        try:
            versions = as_versions("commits", self.commits_to_verify)
        except ConfigurationError as error:
            raise AirflowFailException(f"{error.code}: {error}") from error
        if versions:
            return super().execute(context)
        self.log.info("There is %s", NOTHING_TO_VERIFY)
        nothing = JobResult(job_id="", kind=self.job_kind(), status=JobStatus.SUCCEEDED)
        return {**summarize(nothing, result_uri=""), "note": NOTHING_TO_VERIFY}

    def job_kind(self) -> str:
        return "verify"

    def job_params(self) -> Mapping[str, Any]:
        params: dict[str, Any] = {"commits": as_versions("commits", self.commits_to_verify)}
        if roots := as_locations("allowed_root_uris", self.allowed_root_uris):
            params["allowed_root_uris"] = roots
        return params

    def commits(self) -> bool:
        return False
