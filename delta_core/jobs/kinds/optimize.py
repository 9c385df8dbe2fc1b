"""Kind `optimize`: put small files together, or rows into the order of some columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from delta_core.errors import ConfigurationError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobMetrics, JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import ALLOWED_ROOT_URIS, JobKind
from delta_core.maintenance.clustering import (
    ClusteringPlan,
    OrderingResult,
    ZOrderPlan,
    apply_clustering,
    apply_z_order,
    plan_clustering,
    plan_z_order,
)
from delta_core.maintenance.compaction import (
    BinResult,
    CompactionPlan,
    apply_compaction,
    plan_compaction,
)
from delta_core.snapshot.clustering import clustering_of
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore

_Plan = CompactionPlan | ZOrderPlan | ClusteringPlan

_OF_COMPACTION = ("min_file_size_bytes",)
_OF_ORDERING = ("min_new_fraction", "full", "memory_limit_bytes")

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "predicate": {"type": ["string", "null"], "description": "Over partition columns only."},
        "target_size_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Size of a new file; delta.targetFileSize when null.",
        },
        "min_file_size_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Files below this are small; three quarters of the target when null.",
        },
        "z_order_by": {
            "type": ["array", "null"],
            "items": {"type": "string", "minLength": 1},
            "description": "Bring rows near each other in these columns into the same files; "
            "null or empty clusters a table with clustering columns and puts small files of others together.",
        },
        "min_new_fraction": {
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": 1,
            "description": "Z-order: leave a partition alone while a smaller share of its bytes is new; "
            "clustering: leave the table alone.",
        },
        "full": {
            "type": "boolean",
            "description": "Z-order: rewrite what is in order too; clustering: also what was clustered by "
            "other columns, or by another engine.",
        },
        "memory_limit_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Z-order and clustering: memory for rows; what needs more goes over disk.",
        },
        "compression": {"enum": ["snappy", "zstd", "none"], "description": "Codec of the new files."},
        "allowed_root_uris": ALLOWED_ROOT_URIS,
        "dry_run": {"type": "boolean", "description": "Plan only."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Plan, then apply; nothing to do commits nothing."""
    snapshot = context.require_snapshot()
    roots = context.allowed_roots(spec)
    plan = _planned(snapshot, spec.params, DataAccess(allowed_roots=roots, clock=context.clock))
    bins = len(plan.bins) if isinstance(plan, CompactionPlan) else len(plan.groups)
    context.reporter.emit("files.planned", files=plan.num_files, bytes=plan.total_bytes, bins=bins)
    if spec.params.get("dry_run", False):
        return context.succeeded(spec, predicted=plan.predicted(), output={"plan": plan.to_json()})
    result = _apply(snapshot, plan, spec, context, roots=roots)
    already = result.committed is not None and result.committed.already_applied
    figures = result.metrics
    return context.succeeded(
        spec,
        version_to=snapshot.version if result.committed is None else result.committed.version,
        commits=() if result.version is None else (result.version,),
        already_applied=already,
        predicted=plan.predicted(),
        actual={
            "files_removed": figures["numFilesRemoved"],
            "files_added": figures["numFilesAdded"],
            "bytes_removed": figures["filesRemoved"]["totalSize"],
            "bytes_added": figures["filesAdded"]["totalSize"],
            "partitions": figures["partitionsOptimized"],
            "rows": result.rows,
        },
        metrics=JobMetrics(
            files_added=figures["numFilesAdded"],
            files_removed=figures["numFilesRemoved"],
            bytes_added=figures["filesAdded"]["totalSize"],
            bytes_removed=figures["filesRemoved"]["totalSize"],
            rows=result.rows,
        ),
        output={"metrics": dict(figures)},
    )


def _planned(snapshot: Snapshot, params: Mapping[str, Any], reach: DataAccess) -> _Plan:
    columns = params.get("z_order_by")
    target = params.get("target_size_bytes")
    if columns:
        _refuse_options(params, _OF_COMPACTION, why="Z-order rewrites whole partitions, whatever their files")
        return plan_z_order(
            snapshot,
            columns,
            predicate=params.get("predicate"),
            target_size_bytes=target,
            min_new_fraction=params.get("min_new_fraction") or 0.0,
            full=params.get("full", False),
            reach=reach,
        )
    clustering = clustering_of(snapshot)
    if clustering is not None and clustering.columns:
        why = "the table has clustering columns, so it has no partitions and files of any size are clustered"
        _refuse_options(params, ("predicate", *_OF_COMPACTION), why=why)
        return plan_clustering(
            snapshot,
            target_size_bytes=target,
            min_new_fraction=params.get("min_new_fraction") or 0.0,
            full=params.get("full", False),
            reach=reach,
        )
    why = "without z_order_by, and without clustering columns, only small files are rewritten"
    _refuse_options(params, _OF_ORDERING, why=why, fix="name the columns in z_order_by, or leave it out")
    return plan_compaction(
        snapshot,
        predicate=params.get("predicate"),
        target_size_bytes=target,
        min_file_size_bytes=params.get("min_file_size_bytes"),
        reach=reach,
    )


def _refuse_options(
    params: Mapping[str, Any], foreign: Sequence[str], *, why: str, fix: str = "leave it out"
) -> None:
    """Refuse options of another way of optimizing, which would be ignored without a word."""
    given = [name for name in foreign if params.get(name)]
    if given:
        raise ConfigurationError(f"{', '.join(given)} has no meaning here", cause=why, fix=fix)


def _apply(
    snapshot: Snapshot, plan: _Plan, spec: JobSpec, context: JobContext, *, roots: Sequence[LogStore]
) -> BinResult | OrderingResult:
    compression = spec.params.get("compression", "snappy")
    executor = context.executor_for(spec, planned_bytes=plan.total_bytes)
    properties = context.commit_properties(spec)
    if isinstance(plan, ZOrderPlan):
        return apply_z_order(
            snapshot,
            plan,
            allowed_roots=roots,
            memory_limit_bytes=spec.params.get("memory_limit_bytes"),
            executor=executor,
            properties=properties,
            progress=context.reporter,
            compression=compression,
            observer=context.observer,
            clock=context.clock,
        )
    if isinstance(plan, ClusteringPlan):
        return apply_clustering(
            snapshot,
            plan,
            allowed_roots=roots,
            memory_limit_bytes=spec.params.get("memory_limit_bytes"),
            executor=executor,
            properties=properties,
            progress=context.reporter,
            compression=compression,
            observer=context.observer,
            clock=context.clock,
        )
    return apply_compaction(
        snapshot,
        plan,
        allowed_roots=roots,
        executor=executor,
        properties=properties,
        progress=context.reporter,
        compression=compression,
        observer=context.observer,
        clock=context.clock,
    )


OPTIMIZE: Final = JobKind(
    name="optimize",
    run=run,
    help="Put small files together, or rows in the order of some columns; no row changes.",
    params_schema=_PARAMS,
)
