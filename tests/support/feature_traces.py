"""What a log says of a feature that was dropped, from its raw actions: the library reads nothing here.

A client that does not know the feature uses the table from the drop on. So the version of the drop must not
need it, and where the feature is one of readers, neither may what such a client reads on its way there: the
versions from some checkpoint on, if the log behind that one is protected, or else all that are left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

PROTECTION = "delta.requireCheckpointProtectionBeforeVersion"

_OF_READERS = frozenset({"deletionVectors", "columnMapping", "typeWidening", "v2Checkpoint"})
_SWITCHES = {
    "deletionVectors": "delta.enableDeletionVectors",
    "columnMapping": "delta.columnMapping.mode",
    "typeWidening": "delta.enableTypeWidening",
    "rowTracking": "delta.enableRowTracking",
    "inCommitTimestamp": "delta.enableInCommitTimestamps",
    "changeDataFeed": "delta.enableChangeDataFeed",
    "icebergCompatV1": "delta.enableIcebergCompatV1",
    "icebergCompatV2": "delta.enableIcebergCompatV2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawVersion:
    """A version, told from the commits up to it.

    Attributes:
        features: those that its protocol lists.
        live: the `add` of each live file, by path.
        operation: what its commit is called.
        dropped: the feature that it drops, or None.
    """

    version: int
    features: frozenset[str] = frozenset()
    configuration: Mapping[str, str]
    schema: str = ""
    live: Mapping[str, Mapping[str, Any]]
    operation: str = ""
    dropped: str | None = None

    @property
    def rows(self) -> int:
        """How many rows are live, by the statistics."""
        return sum(_live_rows(add) for add in self.live.values())


def raw_versions(commits: Sequence[Sequence[Mapping[str, Any]]]) -> list[RawVersion]:
    """Every version of a log whose commits are all there, from version 0 on."""
    found: list[RawVersion] = []
    state = RawVersion(version=-1, configuration={}, live={})
    for version, actions in enumerate(commits):
        live = dict(state.live)
        for remove in (action["remove"] for action in actions if "remove" in action):
            live.pop(remove["path"], None)
        live |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
        state = replace(state, version=version, live=live, operation="", dropped=None)
        for action in actions:
            state = _with(state, action)
        found.append(state)
    return found


def _with(state: RawVersion, action: Mapping[str, Any]) -> RawVersion:
    if "protocol" in action:
        listed = {
            *action["protocol"].get("writerFeatures", ()),
            *action["protocol"].get("readerFeatures", ()),
        }
        return replace(state, features=frozenset(listed))
    if "metaData" in action:
        found = action["metaData"]
        return replace(state, configuration=found["configuration"], schema=found["schemaString"])
    if "commitInfo" in action:
        info = action["commitInfo"]
        operation = str(info.get("operation", ""))
        name = info.get("operationParameters", {}).get("featureName")
        return replace(state, operation=operation, dropped=name if operation == "DROP FEATURE" else None)
    return state


def needs(feature: str, version: RawVersion) -> bool:
    """Whether the version's files or columns need the feature, whatever its protocol lists."""
    match feature:
        case "deletionVectors":
            return any(add.get("deletionVector") for add in version.live.values())
        case "rowTracking":
            return any("baseRowId" in add for add in version.live.values())
        case "columnMapping":
            return "delta.columnMapping.physicalName" in version.schema
        case "typeWidening":
            return "delta.typeChanges" in version.schema
    return False


def unlisted(version: RawVersion) -> Iterator[str]:
    """Features that a version needs, or has switched on, and does not list."""
    for feature, switch in _SWITCHES.items():
        if feature in version.features or not version.features:
            continue
        on = version.configuration.get(switch, "false") not in ("false", "none")
        if on or needs(feature, version):
            yield f"version {version.version} ({version.operation}) uses {feature} and does not list it"


def drop_faults(
    versions: Sequence[RawVersion], dropped: int, *, oldest: int, checkpoints: Mapping[int, bool]
) -> Iterator[str]:
    """What is wrong with the version that drops a feature, in words.

    Args:
        versions: of the log.
        dropped: the version.
        oldest: the oldest one that could be read when it was committed.
        checkpoints: those that were there then by version, and whether each is a V2 checkpoint.
    """
    now = versions[dropped]
    feature = now.dropped
    assert feature is not None
    what = f"version {dropped} drops {feature}"
    if feature in now.features:
        yield f"{what} and lists it"
    if needs(feature, now) or _SWITCHES.get(feature, "") in now.configuration:
        yield f"{what} and uses it"
    protected = int(now.configuration.get(PROTECTION, 0)) if "checkpointProtection" in now.features else 0
    if feature == "checkpointProtection":
        before = int(versions[dropped - 1].configuration.get(PROTECTION, 0))
        if oldest < before:
            yield f"{what}, and the log before version {before} goes back to {oldest}"
    if feature not in _OF_READERS:
        return
    since = 1 + max((v.version for v in versions[:dropped] if needs(feature, v)), default=-1)
    if feature == "v2Checkpoint":
        since = 1 + max((version for version, is_v2 in checkpoints.items() if is_v2), default=-1)
    if protected < dropped:
        if since > oldest:
            yield f"{what}, version {since - 1} uses it, and nothing protects the log from {oldest} on"
        return
    readable = {
        version for version, is_v2 in checkpoints.items() if not is_v2 or "v2Checkpoint" in now.features
    }
    barriers = [version for version in readable if since <= version < dropped]
    if not barriers:
        yield f"{what}, and no checkpoint is there from version {since} on, the first that does not use it"


def _live_rows(add: Mapping[str, Any]) -> int:
    rows = int(json.loads(add["stats"])["numRecords"])
    dv = add.get("deletionVector")
    return rows - (int(dv["cardinality"]) if dv else 0)
