"""Kind `optimize`: compact small files, or Z-order or cluster rows by columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from delta_core.errors import ConfigurationError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobMetrics, JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import ALLOWED_ROOT_URIS, JobKind
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering import (
    ClusteringPlan,
    ZOrderPlan,
    plan_clustering,
    plan_z_order,
)
from delta_core.maintenance.compaction import CompactionPlan, plan_compaction
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.storage.data_access import DataAccess

_Plan = CompactionPlan | ZOrderPlan | ClusteringPlan

_COMPACTION_OPTIONS = ("min_file_size_bytes",)
_ORDERING_OPTIONS = ("min_new_fraction", "full", "memory_limit_bytes")

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "predicate": {"type": ["string", "null"], "description": "A predicate over partition columns only."},
        "target_size_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Size of a new file; by default delta.targetFileSize.",
        },
        "min_file_size_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Files below this size are small; by default three quarters of the target.",
        },
        "z_order_by": {
            "type": ["array", "null"],
            "items": {"type": "string", "minLength": 1},
            "description": "Z-order rows by these columns. When null or empty, a table with clustering "
            "columns is clustered, and another table is compacted.",
        },
        "min_new_fraction": {
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": 1,
            "description": "Z-order: skip a partition while a smaller share of its bytes is new. "
            "Clustering: skip the table.",
        },
        "full": {
            "type": "boolean",
            "description": "Z-order: also rewrite files in order. Clustering: also rewrite files that were "
            "clustered by other columns, or by another engine.",
        },
        "memory_limit_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Z-order and clustering: memory for sorting rows. A larger sort spills to disk.",
        },
        "compression": {"enum": ["snappy", "zstd", "none"], "description": "Codec of the new files."},
        "allowed_root_uris": ALLOWED_ROOT_URIS,
        "dry_run": {"type": "boolean", "description": "Plan only."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Plan a compaction, Z-order or clustering, then apply it. An empty plan commits nothing."""
    snapshot = context.require_snapshot()
    roots = context.allowed_roots(spec)
    plan = _make_plan(snapshot, spec.params, DataAccess(allowed_roots=roots, clock=context.clock))
    return applied(spec, context, snapshot, plan)


def applied(
    spec: JobSpec, context: JobContext, snapshot: Snapshot, plan: _Plan, *, auto: bool = False
) -> JobResult:
    """Apply a plan, unless the job is a dry run. `auto` is recorded in the operation's parameters."""
    roots = context.allowed_roots(spec)
    bins = len(plan.bins) if isinstance(plan, CompactionPlan) else len(plan.groups)
    context.reporter.emit("files.planned", files=plan.num_files, bytes=plan.total_bytes, bins=bins)
    if spec.params.get("dry_run", False):
        return context.succeeded(spec, predicted=plan.predicted(), output={"plan": plan.to_json()})
    run = replace(
        context.run,
        allowed_roots=roots,
        executor=context.executor_for(spec, planned_bytes=plan.total_bytes),
        commit=context.commit_properties(spec),
    )
    result = apply_rewrite(
        snapshot,
        plan,
        memory_limit_bytes=spec.params.get("memory_limit_bytes"),
        compression=spec.params.get("compression", "snappy"),
        auto=auto,
        run=run,
    )
    already_applied = result.committed is not None and result.committed.already_applied
    metrics = result.metrics
    return context.succeeded(
        spec,
        version_to=snapshot.version if result.committed is None else result.committed.version,
        commits=() if result.version is None else (result.version,),
        already_applied=already_applied,
        predicted=plan.predicted(),
        actual={
            "files_removed": metrics["numFilesRemoved"],
            "files_added": metrics["numFilesAdded"],
            "bytes_removed": metrics["filesRemoved"]["totalSize"],
            "bytes_added": metrics["filesAdded"]["totalSize"],
            "partitions": metrics["partitionsOptimized"],
            "rows": result.rows,
        },
        metrics=JobMetrics(
            files_added=metrics["numFilesAdded"],
            files_removed=metrics["numFilesRemoved"],
            bytes_added=metrics["filesAdded"]["totalSize"],
            bytes_removed=metrics["filesRemoved"]["totalSize"],
            rows=result.rows,
        ),
        output={"metrics": dict(metrics)},
    )


def _make_plan(snapshot: Snapshot, params: Mapping[str, Any], data_access: DataAccess) -> _Plan:
    columns = params.get("z_order_by")
    target = params.get("target_size_bytes")
    if columns:
        _refuse_options(
            params,
            _COMPACTION_OPTIONS,
            cause="Z-order rewrites whole partitions, regardless of the file sizes.",
        )
        return plan_z_order(
            snapshot,
            columns,
            predicate=params.get("predicate"),
            target_size_bytes=target,
            min_new_fraction=params.get("min_new_fraction") or 0.0,
            full=params.get("full", False),
            reach=data_access,
        )
    clustering = clustering_of(snapshot)
    if clustering is not None and clustering.columns:
        cause = "The table has clustering columns: it has no partitions, and files of any size are clustered."
        _refuse_options(params, ("predicate", *_COMPACTION_OPTIONS), cause=cause)
        return plan_clustering(
            snapshot,
            target_size_bytes=target,
            min_new_fraction=params.get("min_new_fraction") or 0.0,
            full=params.get("full", False),
            reach=data_access,
        )
    cause = "Without z_order_by and without clustering columns, only small files are rewritten."
    _refuse_options(
        params, _ORDERING_OPTIONS, cause=cause, fix="Name the columns in z_order_by, or leave the option out."
    )
    return plan_compaction(
        snapshot,
        predicate=params.get("predicate"),
        target_size_bytes=target,
        min_file_size_bytes=params.get("min_file_size_bytes"),
        reach=data_access,
    )


def _refuse_options(
    params: Mapping[str, Any], inapplicable: Sequence[str], *, cause: str, fix: str = "Leave the option out."
) -> None:
    """Refuse options that do not apply to this way of optimizing, and would be ignored silently."""
    given = [name for name in inapplicable if params.get(name)]
    if given:
        raise ConfigurationError(
            f"The option {', '.join(given)} does not apply to this table or job.", cause=cause, fix=fix
        )


OPTIMIZE: Final = JobKind(
    name="optimize",
    run=run,
    help="Compact small files, or Z-order or cluster rows by columns. No row changes.",
    params_schema=_PARAMS,
)
