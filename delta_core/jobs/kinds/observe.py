"""Kinds `observe` and `plan`: the table's health, and which maintenance is due and why."""

from __future__ import annotations

from typing import Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.maintenance.clustering import ClusteringPlan, plan_clustering
from delta_core.maintenance.compaction import CompactionPlan, plan_compaction
from delta_core.maintenance.observe import MaintenanceRules, decide, observe
from delta_core.maintenance.vacuum import plan_vacuum

_OBSERVE_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"target_size_bytes": {"type": ["integer", "null"], "minimum": 1}},
}

_PLAN_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "rules": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "properties": {
                "compaction_enabled": {"type": "boolean"},
                "compaction_min_small_files": {"type": "integer", "minimum": 1},
                "compaction_target_size_bytes": {"type": ["integer", "null"], "minimum": 1},
                "checkpoint_enabled": {"type": "boolean"},
                "checkpoint_interval": {"type": ["integer", "null"], "minimum": 1},
                "vacuum_enabled": {"type": "boolean"},
                "vacuum_retention_hours": {"type": ["number", "null"], "minimum": 0},
                "vacuum_min_bytes": {"type": "integer", "minimum": 0},
                "vacuum_max_age_hours": {"type": "number", "minimum": 0},
                "cluster_enabled": {"type": "boolean"},
                "cluster_columns": {"type": "array", "items": {"type": "string", "minLength": 1}},
                "cluster_min_new_fraction": {"type": "number", "minimum": 0, "maximum": 1},
            },
            "description": "A resolved policy: when each verb is due.",
        },
        "list_vacuum": {
            "type": "boolean",
            "description": "Also list the store for what a vacuum would delete.",
        },
    },
}


def run_observe(spec: JobSpec, context: JobContext) -> JobResult:
    """Facts only."""
    health = observe(
        context.require_snapshot(),
        target_size_bytes=spec.params.get("target_size_bytes"),
        clock=context.clock,
    )
    return context.succeeded(spec, output={"health": health.to_json()})


def run_plan(spec: JobSpec, context: JobContext) -> JobResult:
    """Facts, decisions, and the plans of the verbs that are due."""
    snapshot = context.require_snapshot()
    rules = MaintenanceRules.from_json(spec.params.get("rules") or {})
    health = observe(
        snapshot,
        target_size_bytes=rules.compaction_target_size_bytes,
        cluster_columns=rules.cluster_columns,
        clock=context.clock,
    )
    decisions = decide(health, rules)
    target = rules.compaction_target_size_bytes
    compaction: CompactionPlan | ClusteringPlan
    if health.clustered_by:
        compaction = plan_clustering(snapshot, target_size_bytes=target)
    else:
        compaction = plan_compaction(snapshot, target_size_bytes=target)
    output = {
        "health": health.to_json(),
        "rules": rules.to_json(),
        "decisions": [decision.to_json() for decision in decisions],
        "due": [decision.verb for decision in decisions if decision.due],
        "compaction": compaction.predicted(),
    }
    if spec.params.get("list_vacuum", False):
        vacuum = plan_vacuum(snapshot, retention_hours=rules.vacuum_retention_hours, clock=context.clock)
        output["vacuum"] = vacuum.predicted()
    context.reporter.emit("files.planned", files=compaction.num_files, bytes=compaction.total_bytes)
    return context.succeeded(spec, predicted=compaction.predicted(), output=output)


OBSERVE: Final = JobKind(
    name="observe",
    run=run_observe,
    help="Tell how healthy the table is.",
    params_schema=_OBSERVE_PARAMS,
    commits=False,
)
PLAN: Final = JobKind(
    name="plan",
    run=run_plan,
    help="Tell which maintenance is due, and why.",
    params_schema=_PLAN_PARAMS,
    commits=False,
)
