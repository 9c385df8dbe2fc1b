"""The XCom of an operator that runs a job, as a type: what `task.output` and `xcom_pull` give."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class JobSummary(TypedDict):
    """What a job did, small enough for XCom. The whole result is at `result_uri`.

    Attributes:
        version_from: the version that the job read; None when there was no table, or none was opened.
        version_to: the last version that it committed, or `version_from`.
        commits: the versions that it committed.
        already_applied: whether the table had the work already, so that nothing was done.
        applied_by: the commit that had done it, where it is still in the log: its `version`, and `dag`,
            `task`, `run`, `try` and `map_index` as far as it says.
        note: why nothing was done, in words; None when something was.
        metrics: what the job cost and moved, as far as it was measured.
        predicted, actual, output: per kind of job, as long as they are small.
        markdown: Markdown for people, where the kind makes it.
        shortened: which of these were cut.
    """

    job_id: str
    kind: str
    status: str
    version_from: int | None
    version_to: int | None
    commits: list[int]
    already_applied: bool
    applied_by: dict[str, Any] | None
    note: str | None
    metrics: dict[str, float]
    warnings: list[str]
    result_uri: str
    predicted: dict[str, Any]
    actual: dict[str, Any]
    output: dict[str, Any]
    markdown: NotRequired[str]
    shortened: NotRequired[list[str]]
