"""Kinds `checkpoint` and `cleanup_metadata`: maintenance of the log."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.write import write_checkpoint
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.table_features.feature import WriterKind

_CHECKPOINT_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"dry_run": {"type": "boolean", "description": "Plan only; false unless given."}},
}
_CLEANUP_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"dry_run": {"type": "boolean", "description": "Plan only; true unless given."}},
}


def run_checkpoint(spec: JobSpec, context: JobContext) -> JobResult:
    """Write a checkpoint of the newest version. Writes nothing when it has a checkpoint, or in a dry run."""
    snapshot, dry_run = context.require_snapshot(), spec.params.get("dry_run", False)
    if snapshot.segment.checkpoint_version == snapshot.version:
        return context.succeeded(
            spec,
            actual={} if dry_run else {"written": False},
            output={"reason": "the newest version has a checkpoint"},
        )
    context.check_deadline(spec)
    if dry_run:
        snapshot.require_writable(writer_kind=WriterKind.CHECKPOINT, operation="write a checkpoint")
        return context.succeeded(spec, predicted={"version": snapshot.version})
    context.reporter.emit("checkpoint.before", version=snapshot.version)
    info = write_checkpoint(snapshot)
    context.reporter.emit("checkpoint.after", version=snapshot.version, written=True)
    return context.succeeded(spec, actual={"written": True, **asdict(info)})


def run_cleanup(spec: JobSpec, context: JobContext) -> JobResult:
    """Delete log files that no retained version needs."""
    dry_run = spec.params.get("dry_run", True)
    context.check_deadline(spec)
    context.check_lease()
    cleanup = cleanup_expired_logs(context.require_snapshot(), clock=context.clock, dry_run=dry_run)
    metrics = {"files_deleted": len(cleanup.files), "bytes_deleted": cleanup.total_bytes}
    output = {
        "cutoff_ms": cleanup.cutoff_ms,
        "checkpoint_version": cleanup.checkpoint_version,
        "files": [{"path": info.path, "size_bytes": info.size_bytes} for info in cleanup.files],
    }
    return context.succeeded(
        spec,
        predicted=metrics,
        actual={} if dry_run else metrics,
        output=output,
        warnings=tuple(f"Older log files are kept because of {pin.label}." for pin in cleanup.pins),
    )


CHECKPOINT: Final = JobKind(
    name="checkpoint",
    run=run_checkpoint,
    help="Write a checkpoint of the newest version.",
    params_schema=_CHECKPOINT_PARAMS,
    commits=False,
)
CLEANUP_METADATA: Final = JobKind(
    name="cleanup_metadata",
    run=run_cleanup,
    help="Delete log files that no retained version needs.",
    params_schema=_CLEANUP_PARAMS,
    commits=False,
)
