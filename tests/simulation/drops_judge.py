"""What is promised where features are dropped, from the log's raw bytes.

Whoever does not know a dropped feature reads and writes the table from the drop on: at the moment of the drop
nothing that is left to it needs the feature, and no later commit brings it in without naming it. No step of a
drop changes how many rows there are, and commits have times wherever the table says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.simulation.history import Kind, Record
from tests.simulation.judge import Model
from tests.simulation.store import Change, Entry
from tests.support.feature_traces import RawVersion, drop_faults, raw_versions, unlisted

_COMMIT = re.compile(r"_delta_log/([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/([0-9]{20})\.checkpoint(\..+)?\.(?:parquet|json)")
_TIMES = "delta.enableInCommitTimestamps"

STEPS = frozenset(
    {
        "DROP FEATURE",
        "REORG",
        "ROW TRACKING UNBACKFILL",
        "Deletion Vector Tombstones",
        "Empty Commit",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
    }
)
"""Commits that change no row."""


def judge_drops(record: Record, model: Model, ledger: Sequence[Entry]) -> Iterator[str]:
    """What was promised and not kept, in words."""
    versions = raw_versions(model.commits)
    for before, after in pairwise(versions):
        if after.operation in STEPS and after.rows != before.rows:
            yield (f"version {after.version} ({after.operation}) has {after.rows} rows after {before.rows}")
    for version in versions:
        yield from unlisted(version)
        yield from _numbered_twice(version)
    yield from _times(model, versions)
    yield from _drops(versions, ledger)
    for attempt in record.attempts:
        if attempt.job.kind is Kind.DROP and attempt.outcome == "committed":
            found = [v for v in model.versions_of(attempt.txn_id) if versions[v].dropped is not None]
            if len(found) != 1:
                yield f"{attempt.job.name} was acknowledged, and dropped in {found}"


def _drops(versions: Sequence[RawVersion], ledger: Sequence[Entry]) -> Iterator[str]:
    """Each drop, by what the log held when it was committed."""
    commits: dict[int, bytes] = {}
    first: dict[int, bytes] = {}
    checkpoints: dict[str, tuple[int, bool]] = {}
    for entry in ledger:
        gone = entry.change is Change.DELETED
        if match := _CHECKPOINT.fullmatch(entry.path):
            if gone:
                checkpoints.pop(entry.path, None)
            else:
                checkpoints[entry.path] = int(match[1]), match[2] is not None
        if (match := _COMMIT.fullmatch(entry.path)) is None:
            continue
        version = int(match[1])
        if gone:
            commits.pop(version, None)
            continue
        is_new = version not in first
        # What is written again below the tail, with other bytes, no reader gets to.
        if first.setdefault(version, entry.data) == entry.data:
            commits[version] = entry.data
        if is_new and version < len(versions) and versions[version].dropped is not None:
            there: dict[int, bool] = {}
            for number, is_v2 in checkpoints.values():
                there[number] = there.get(number, False) or is_v2
            begins = [*there, *([0] if 0 in commits and (1 in commits or version <= 1) else [])]
            yield from drop_faults(versions, version, oldest=min(begins, default=version), checkpoints=there)


def _times(model: Model, versions: Sequence[RawVersion]) -> Iterator[str]:
    """Where times are on, each commit begins with its own, later than the one before."""
    last = -1
    for version, actions in zip(versions, model.commits, strict=True):
        if version.configuration.get(_TIMES) != "true":
            last = -1
            continue
        time = actions[0].get("commitInfo", {}).get("inCommitTimestamp")
        if not isinstance(time, int) or time <= last:
            yield f"version {version.version} is of the in-commit time {time}, the one before of {last}"
        last = time if isinstance(time, int) else last


def _numbered_twice(version: RawVersion) -> Iterator[str]:
    """No two live files have one row id."""
    if version.configuration.get("delta.enableRowTracking") != "true":
        return
    ranges = sorted(
        (add["baseRowId"], add["baseRowId"] + _records(add))
        for add in version.live.values()
        if "baseRowId" in add
    )
    if len(ranges) < len(version.live):
        yield f"version {version.version} has files without row ids"
    for (_, end), (begin, _) in pairwise(ranges):
        if begin < end:
            yield f"version {version.version} has the row id {begin} twice"


def _records(add: Mapping[str, Any]) -> int:
    return int(json.loads(add["stats"])["numRecords"])
