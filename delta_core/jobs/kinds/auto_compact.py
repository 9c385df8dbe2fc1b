"""Kind `auto_compact`: compact the partitions in which commits have left many small files."""

from __future__ import annotations

from typing import Final

from delta_core.errors import InvalidJobSpecError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.kinds.optimize import applied
from delta_core.jobs.registry import ALLOWED_ROOT_URIS, JobKind
from delta_core.maintenance.compaction.auto import (
    AUTO_COMPACT,
    MIN_FILES,
    asks_for_auto_compaction,
    plan_auto_compaction,
)
from delta_core.storage.data_access import DataAccess

AUTO_COMPACTION_LEASE: Final = "auto-compaction"
"""The lease of `deltaward auto-compact`."""

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "always": {
            "type": "boolean",
            "description": "Also compact a table whose properties do not ask for it, as a policy may decide.",
        },
        "min_files": {
            "type": ["integer", "null"],
            "minimum": 2,
            "description": "Small files from which on a partition is compacted; 50 by default.",
        },
        "target_size_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Size of a new file; by default 128 MiB, or delta.targetFileSize if that is less.",
        },
        "compression": {"enum": ["snappy", "zstd", "none"], "description": "Codec of the new files."},
        "allowed_root_uris": ALLOWED_ROOT_URIS,
        "dry_run": {"type": "boolean", "description": "Plan only."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Compact what is due. A job without a lease is refused: two of them would rewrite the same files."""
    snapshot, params = context.require_snapshot(), spec.params
    if spec.lease is None and not params.get("dry_run", False):
        raise InvalidJobSpecError(
            "An auto_compact job needs a lease.",
            cause="It runs after commits, so the job of an earlier commit may still work.",
            fix=f'Name a lease in the specification, such as "lease": "{AUTO_COMPACTION_LEASE}".',
        )
    if not (params.get("always", False) or asks_for_auto_compaction(snapshot)):
        return context.succeeded(spec, output={"reason": f"the table does not set {AUTO_COMPACT}"})
    roots = context.allowed_roots(spec)
    plan = plan_auto_compaction(
        snapshot,
        min_files=params.get("min_files") or MIN_FILES,
        target_size_bytes=params.get("target_size_bytes"),
        reach=DataAccess(allowed_roots=roots, clock=context.clock),
    )
    if plan.is_empty:
        return context.succeeded(spec, output={"reason": "no partition has many small files"})
    return applied(spec, context, snapshot, plan, auto=True)


AUTO_COMPACT_KIND: Final = JobKind(
    name="auto_compact",
    run=run,
    help="Compact partitions with many small files, if the table's properties ask for it. Needs a lease.",
    params_schema=_PARAMS,
)
