"""The type of the XCom of an operator that runs a job, as returned by `task.output` and `xcom_pull`."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class JobSummary(TypedDict):
    """The summary of a job's result, small enough for XCom. The complete result is at `result_uri`.

    Attributes:
        version_from: the version that the job read; None if the table did not exist or was not opened.
        version_to: the last version that the job committed, or `version_from`.
        commits: the versions that the job committed.
        already_applied: whether the table already had the work, so that the job did nothing.
        applied_by: the earlier commit that applied the work, if it is still in the log: its `version`, and
            `dag`, `task`, `run`, `try` and `map_index` as far as the commit records them.
        note: a sentence that explains why the job did nothing; None if it did something.
        metrics: the metrics of the job, as far as they were measured.
        predicted, actual, output: these depend on the job kind. Large ones are shortened.
        markdown: a report for people as Markdown, if the job kind produces one.
        shortened: the names of the parts that were shortened.
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
