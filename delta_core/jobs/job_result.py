"""JobResult: the outcome of a job as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from delta_core.transaction.applied_commit import AppliedCommit


class JobStatus(StrEnum):
    """The status of a finished job. `unknown`: the job cannot determine whether its commit landed."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobErrorInfo:
    """The error's `DeltaError.code`, its message, and whether running the job again can help."""

    code: str
    message: str
    retryable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMetrics:
    """Metrics of a job; None for a metric that was not measured.

    Attributes:
        requests, bytes_read, bytes_written: counts of the driver's process for all stores during the job.
            They do not include what Spark's executors read and write.
    """

    files_added: int | None = None
    files_removed: int | None = None
    bytes_added: int | None = None
    bytes_removed: int | None = None
    rows: int | None = None
    requests: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    cpu_seconds: float | None = None
    wall_seconds: float | None = None
    peak_rss_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The outcome of one JobSpec.

    Attributes:
        version_from: the version the job read; None when the table did not exist.
        version_to: the last version that the job committed, or `version_from` when it committed nothing.
        commits: the versions that the job committed.
        already_applied: True when the idempotency key was in the table and the job did nothing.
        applied_by: with `already_applied`, the commit that did the work; None when it is not in the log.
        predicted, actual: the metrics of the plan and of the execution, per kind.
        output: the result of the kind (a vacuum plan, a health report), JSON values only.
    """

    job_id: str
    kind: str
    status: JobStatus
    version_from: int | None = None
    version_to: int | None = None
    commits: tuple[int, ...] = ()
    already_applied: bool = False
    applied_by: AppliedCommit | None = None
    predicted: Mapping[str, Any] = field(default_factory=dict, hash=False)
    actual: Mapping[str, Any] = field(default_factory=dict, hash=False)
    metrics: JobMetrics = field(default_factory=JobMetrics)
    output: Mapping[str, Any] = field(default_factory=dict, hash=False)
    warnings: tuple[str, ...] = ()
    error: JobErrorInfo | None = None
    artefact_uris: tuple[str, ...] = ()
    format_version: int = 1
