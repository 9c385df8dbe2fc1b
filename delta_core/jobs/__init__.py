"""Jobs: the wire contract, the registry of job kinds, and running a job.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.jobs.builtin import default_registry as default_registry
    from delta_core.jobs.codec import result_from_json as result_from_json
    from delta_core.jobs.codec import result_to_json as result_to_json
    from delta_core.jobs.codec import spec_from_json as spec_from_json
    from delta_core.jobs.codec import spec_to_json as spec_to_json
    from delta_core.jobs.context import JobContext as JobContext
    from delta_core.jobs.job_result import JobErrorInfo as JobErrorInfo
    from delta_core.jobs.job_result import JobMetrics as JobMetrics
    from delta_core.jobs.job_result import JobResult as JobResult
    from delta_core.jobs.job_result import JobStatus as JobStatus
    from delta_core.jobs.job_spec import Delivery as Delivery
    from delta_core.jobs.job_spec import IdempotencyKey as IdempotencyKey
    from delta_core.jobs.job_spec import JobSpec as JobSpec
    from delta_core.jobs.job_spec import TableRef as TableRef
    from delta_core.jobs.registry import JobKind as JobKind
    from delta_core.jobs.registry import JobRegistry as JobRegistry
    from delta_core.jobs.run_job import run_job as run_job
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "Delivery": "delta_core.jobs.job_spec",
            "IdempotencyKey": "delta_core.jobs.job_spec",
            "JobContext": "delta_core.jobs.context",
            "JobErrorInfo": "delta_core.jobs.job_result",
            "JobKind": "delta_core.jobs.registry",
            "JobMetrics": "delta_core.jobs.job_result",
            "JobRegistry": "delta_core.jobs.registry",
            "JobResult": "delta_core.jobs.job_result",
            "JobSpec": "delta_core.jobs.job_spec",
            "JobStatus": "delta_core.jobs.job_result",
            "TableRef": "delta_core.jobs.job_spec",
            "default_registry": "delta_core.jobs.builtin",
            "result_from_json": "delta_core.jobs.codec",
            "result_to_json": "delta_core.jobs.codec",
            "run_job": "delta_core.jobs.run_job",
            "spec_from_json": "delta_core.jobs.codec",
            "spec_to_json": "delta_core.jobs.codec",
        },
    )
