"""Kinds `observe` and `plan`: the table's health, and which maintenance is due and why."""

from __future__ import annotations

from typing import Any, Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import ALLOWED_ROOT_URIS, JobKind
from delta_core.maintenance.observe import (
    LastObservation,
    MaintenanceRules,
    asked,
    look,
    look_again,
    observe,
)
from delta_core.maintenance.vacuum import plan_vacuum
from delta_core.storage.data_access import DataAccess

_OBSERVE_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "target_size_bytes": {"type": ["integer", "null"], "minimum": 1},
        "allowed_root_uris": ALLOWED_ROOT_URIS,
    },
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
            "description": "A resolved policy: the conditions under which each verb is due.",
        },
        "since": {
            "type": ["object", "null"],
            "description": "`output.seen` of an earlier plan of the table. Then only newer changes are read.",
        },
        "allowed_root_uris": ALLOWED_ROOT_URIS,
        "list_vacuum": {
            "type": "boolean",
            "description": "Also list the store to find the files that a vacuum would delete.",
        },
    },
}


def run_observe(spec: JobSpec, context: JobContext) -> JobResult:
    """Report the table's health, without decisions."""
    health = observe(
        context.require_snapshot(),
        target_size_bytes=spec.params.get("target_size_bytes"),
        reach=_data_access(spec, context),
        clock=context.clock,
    )
    return context.succeeded(spec, output={"health": health.to_json()})


def run_plan(spec: JobSpec, context: JobContext) -> JobResult:
    """Report the table's health, the decisions, and the plan of the compaction.

    An unchanged table costs one listing when `since` is given.
    """
    rules = MaintenanceRules.from_json(spec.params.get("rules") or {})
    since = _since(spec)
    asked_for = asked(rules, tuple(spec.params.get("allowed_root_uris") or ()))
    list_vacuum = spec.params.get("list_vacuum", False)
    output: dict[str, Any] = {"rules": rules.to_json()}
    versions = {}
    if (
        since is not None
        and since.asked == asked_for
        and not list_vacuum
        and since.holds(context.require_store())
    ):
        outlook = look_again(since, rules, now_ms=context.clock.now_ms())
        versions = {"version_from": outlook.health.version, "version_to": outlook.health.version}
    else:
        context = context.with_table(spec)
        snapshot = context.require_snapshot()
        outlook = look(
            snapshot,
            rules,
            asked_for=asked_for,
            before=None if since is None else since.health,
            reach=_data_access(spec, context),
            clock=context.clock,
        )
        if list_vacuum:
            vacuum = plan_vacuum(snapshot, retention_hours=rules.vacuum_retention_hours, clock=context.clock)
            output["vacuum"] = vacuum.predicted()
    compaction = outlook.compaction
    output |= {
        "health": outlook.health.to_json(),
        "decisions": [decision.to_json() for decision in outlook.decisions],
        "due": [decision.verb for decision in outlook.decisions if decision.due],
        "compaction": dict(compaction),
        "seen": None if outlook.seen is None else outlook.seen.to_json(),
    }
    context.reporter.emit(
        "files.planned", files=compaction["files_removed"], bytes=compaction["bytes_removed"]
    )
    return context.succeeded(spec, predicted=compaction, output=output, **versions)


def _data_access(spec: JobSpec, context: JobContext) -> DataAccess:
    return DataAccess(allowed_roots=context.allowed_roots(spec), clock=context.clock)


def _since(spec: JobSpec) -> LastObservation | None:
    """The earlier plan's `output.seen`, unless it belongs to another table than the job's."""
    document = spec.params.get("since")
    if document is None:
        return None
    last_look = LastObservation.from_json(document)
    return last_look if spec.table.id in (None, last_look.health.table_id) else None


OBSERVE: Final = JobKind(
    name="observe",
    run=run_observe,
    help="Report the table's health.",
    params_schema=_OBSERVE_PARAMS,
    commits=False,
)
PLAN: Final = JobKind(
    name="plan",
    run=run_plan,
    help="Report which maintenance is due, and why.",
    params_schema=_PLAN_PARAMS,
    commits=False,
    opens_table=False,
)
