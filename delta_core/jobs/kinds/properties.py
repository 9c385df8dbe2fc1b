"""Kind `properties`: set and unset table properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from delta_core.dml.definition.properties import set_properties, unset_properties
from delta_core.errors import ConfigurationError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.enablement import FEATURE_PREFIX, MIN_READER_VERSION, MIN_WRITER_VERSION
from delta_core.transaction.commit_result import Committed

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "set": {
            "type": ["object", "null"],
            "additionalProperties": {"type": "string"},
            "description": "Properties and their values.",
        },
        "unset": {
            "type": ["array", "null"],
            "items": {"type": "string", "minLength": 1},
            "description": "Properties to unset. One that is not set is ignored.",
        },
        "dry_run": {"type": "boolean", "description": "Plan only."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Change the properties that differ: one commit sets properties, and one commit unsets others."""
    to_set: Mapping[str, str] = spec.params.get("set") or {}
    to_unset: Sequence[str] = spec.params.get("unset") or ()
    if both := sorted(set(to_set) & set(to_unset)):
        raise ConfigurationError(
            f"These properties are both in set and in unset: {', '.join(both)}.",
            fix="Remove them from one of the two.",
        )
    snapshot = context.require_snapshot()
    configuration = snapshot.metadata.configuration
    changed = {key: value for key, value in to_set.items() if not _is_set(snapshot, key, value)}
    removed = [key for key in to_unset if key in configuration]
    predicted = {"set": len(changed), "unset": len(removed)}
    output: dict[str, Any] = {"set": changed, "unset": removed}
    if spec.params.get("dry_run", False) or not (changed or removed):
        return context.succeeded(spec, predicted=predicted, output=output)
    run_with_key = context.run.with_commit(context.commit_properties(spec))
    steps: list[Committed] = []
    if changed:
        # The last commit records the key, so that a job that died between the two commits repeats both.
        run = run_with_key.without_key() if removed else run_with_key
        steps.append(set_properties(snapshot, changed, run=run))
        snapshot = steps[-1].snapshot or snapshot.refresh()
    if removed:
        steps.append(unset_properties(snapshot, removed, run=run_with_key))
    committed = tuple(step.version for step in steps if not step.already_applied)
    return context.succeeded(
        spec,
        version_to=steps[-1].version,
        commits=committed,
        already_applied=not committed,
        predicted=predicted,
        actual=predicted,
        output=output,
    )


def _is_set(snapshot: Snapshot, key: str, value: str) -> bool:
    """Whether setting the property would change nothing."""
    protocol, name = snapshot.protocol, key.lower()
    if name.startswith(FEATURE_PREFIX):
        supported = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        return name.removeprefix(FEATURE_PREFIX) in {feature.lower() for feature in supported}
    versions = {
        MIN_READER_VERSION.lower(): protocol.min_reader_version,
        MIN_WRITER_VERSION.lower(): protocol.min_writer_version,
    }
    if name in versions:
        return value.isdecimal() and int(value) <= versions[name]
    return snapshot.metadata.configuration.get(key) == value


PROPERTIES: Final = JobKind(
    name="properties",
    run=run,
    help="Set and unset table properties.",
    params_schema=_PARAMS,
)
