"""Kind `properties`: set table properties, and take others back to their defaults."""

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
            "description": "Properties that go back to their defaults; one that is not set is ignored.",
        },
        "dry_run": {"type": "boolean", "description": "Plan only."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Change what is not as it should be: a commit for what is set, and one for what is unset."""
    wanted: Mapping[str, str] = spec.params.get("set") or {}
    unwanted: Sequence[str] = spec.params.get("unset") or ()
    if both := sorted(set(wanted) & set(unwanted)):
        raise ConfigurationError(
            f"These properties are to be set and unset: {', '.join(both)}.", fix="Leave out one of the two."
        )
    snapshot = context.require_snapshot()
    now = snapshot.metadata.configuration
    changed = {key: value for key, value in wanted.items() if not _is_set(snapshot, key, value)}
    gone = [key for key in unwanted if key in now]
    predicted = {"set": len(changed), "unset": len(gone)}
    output: dict[str, Any] = {"set": changed, "unset": gone}
    if spec.params.get("dry_run", False) or not (changed or gone):
        return context.succeeded(spec, predicted=predicted, output=output)
    keyed = context.commit_properties(spec)
    steps: list[Committed] = []
    if changed:
        # The key goes with the last commit, so that a job that died between the two does both again.
        properties = keyed.without_key() if gone else keyed
        steps.append(
            set_properties(
                snapshot, changed, properties=properties, observer=context.observer, clock=context.clock
            )
        )
        snapshot = steps[-1].snapshot or snapshot.refresh()
    if gone:
        steps.append(
            unset_properties(snapshot, gone, properties=keyed, observer=context.observer, clock=context.clock)
        )
    made = tuple(step.version for step in steps if not step.already_applied)
    return context.succeeded(
        spec,
        version_to=steps[-1].version,
        commits=made,
        already_applied=not made,
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
    help="Set table properties, and take others back to their defaults.",
    params_schema=_PARAMS,
)
