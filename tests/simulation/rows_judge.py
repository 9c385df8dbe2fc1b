"""What was promised of rows: those that are gone stay gone, no other goes, and each keeps its id.

An update and a rewrite take no id away and bring none, whatever came before, and no id is ever live twice.

From the store's raw bytes, as `judge`; vectors are decoded by `pyroaring`. Nothing vacuums, so the file of a
vector that a version names is there for good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.simulation.history import Attempt, Kind, Plan, Record
from tests.simulation.judge import Model, is_blind_append
from tests.simulation.rows import HIGH_WATER_MARK, IDS_TAG, NUMBERS_TAG
from tests.simulation.store import Change, Entry
from tests.support.deletion_vectors import deletion_vector_name, deletion_vector_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A file as it is live.

    Attributes:
        gone: positions of its deleted rows.
        since: the version that brought it.
        ids: `baseRowId` and `defaultRowCommitVersion`.
        kept: the ids that its rows had before they came into it, by position; empty where they are new.
    """

    partition: str
    rows: int
    gone: frozenset[int]
    since: int
    ids: tuple[int, int]
    kept: tuple[int, ...] = ()

    @property
    def left(self) -> frozenset[int]:
        """Positions of its live rows."""
        return frozenset(range(self.rows)) - self.gone

    @property
    def live_ids(self) -> list[int]:
        """The ids of its live rows."""
        return [self.id_at(at) for at in self.left]

    def id_at(self, position: int) -> int:
        """The id of a row."""
        return self.kept[position] if self.kept else self.ids[0] + position


State = dict[str, LiveFile]

PRESERVING = frozenset({Kind.MOVE_ROWS, Kind.REWRITE})
"""What takes no row away and brings none."""

TAKING = frozenset({Kind.TAKE_ROWS, Kind.MOVE_ROWS})
"""What takes rows by vectors."""


def judge_rows(plan: Plan, record: Record, model: Model, ledger: Sequence[Entry]) -> Iterator[str]:
    """What was promised and not kept, in words."""
    objects: dict[str, bytes] = {}
    for entry in ledger:
        if entry.change is Change.DELETED:
            objects.pop(entry.path, None)
        else:
            objects[entry.path] = entry.data
    for version, path, name in _lost_deletion_vectors(model, objects):
        yield f"version {version} names for {path} the vector file {name}, which is not there"
        return
    states: list[State] = []
    ever: set[str] = set()
    for version, actions in enumerate(model.commits):
        state = dict(states[-1]) if states else {}
        before = {
            path: state.pop(path)
            for path in [a["remove"]["path"] for a in actions if "remove" in a]
            if path in state
        }
        for add in (a["add"] for a in actions if "add" in a):
            found = _live(add, version, objects)
            old = before.get(add["path"])
            if old is not None:
                yield from _changed(version, add, old, found)
                found = replace(found, since=old.since)
            elif add["path"] in ever:
                yield f"version {version} brings back {add['path']}"
            ever.add(add["path"])
            state[add["path"]] = found
        states.append(state)
    yield from _numbers(model)
    yield from _ids(model, states)
    born = _births(states)
    serializable = plan.configuration.get("delta.isolationLevel") == "Serializable"
    for attempt in record.attempts:
        if attempt.outcome == "committed" and attempt.job.kind in TAKING:
            yield from _taken(attempt, model, states, born, serializable=serializable)


def _lost_deletion_vectors(model: Model, objects: Mapping[str, bytes]) -> Iterator[tuple[int, str, str]]:
    for version, actions in enumerate(model.commits):
        for add in (a["add"] for a in actions if "add" in a):
            name = deletion_vector_name(add.get("deletionVector"))
            if name is not None and name not in objects:
                yield version, add["path"], name


def _live(add: dict[str, Any], version: int, objects: Mapping[str, bytes]) -> LiveFile:
    return LiveFile(
        partition=add["partitionValues"]["p"],
        rows=json.loads(add["stats"])["numRecords"],
        gone=deletion_vector_rows(add.get("deletionVector"), objects.__getitem__),
        since=version,
        ids=(add.get("baseRowId", -1), add.get("defaultRowCommitVersion", -1)),
        kept=tuple(int(row_id) for row_id in (add.get("tags") or {}).get(IDS_TAG, "").split()),
    )


def _ids(model: Model, states: list[State]) -> Iterator[str]:
    """No id is live twice, and an update and a rewrite change none of them."""
    last: frozenset[int] = frozenset()
    for version, state in enumerate(states):
        live = [row_id for file in state.values() for row_id in file.live_ids]
        found = frozenset(live)
        if len(found) < len(live):
            yield f"version {version} has the rows {sorted({i for i in live if live.count(i) > 1})} twice"
        info = next((a["commitInfo"] for a in model.commits[version] if "commitInfo" in a), {})
        if info.get("operation") in PRESERVING and found != last:
            lost, came = sorted(last - found), sorted(found - last)
            yield f"version {version} ({info['operation']}) updates rows and loses {lost} and brings {came}"
        last = found


def _changed(version: int, add: dict[str, Any], old: LiveFile, new: LiveFile) -> Iterator[str]:
    path = add["path"]
    if not old.gone <= new.gone:
        yield f"version {version} brings back the rows {sorted(old.gone - new.gone)} of {path}"
    if new.ids != old.ids:
        yield f"version {version} gives the rows of {path} the ids {new.ids}, they had {old.ids}"
    if new.rows != old.rows or json.loads(add["stats"]).get("tightBounds") is not False:
        yield f"version {version} has wrong statistics for {path}: {add['stats']}"
    if not new.left:
        yield f"version {version} keeps {path}, which has no row left"


def _numbers(model: Model) -> Iterator[str]:
    """Generated numbers go up, no two files have one, and the mark is never lowered."""
    mark = 0
    for version, actions in enumerate(model.commits):
        before = mark
        for metadata in (a["metaData"] for a in actions if "metaData" in a):
            mark = json.loads(metadata["schemaString"])["fields"][0]["metadata"][HIGH_WATER_MARK]
            if mark < before:
                yield f"version {version} lowers the mark of numbers from {before} to {mark}"
        for tags in (a["add"].get("tags") or {} for a in actions if "add" in a):
            first, last = map(int, tags.get(NUMBERS_TAG, f"{before + 1} {mark}").split())
            is_new = NUMBERS_TAG in tags and not any("remove" in action for action in actions)
            if is_new and (first <= before or last > mark):
                yield f"version {version} gives the numbers {first} to {last} after {before}, up to {mark}"


def _births(states: list[State]) -> dict[int, int]:
    """For each id the version that brought its row."""
    born: dict[int, int] = {}
    for version, state in enumerate(states):
        for file in state.values():
            for row_id in file.live_ids:
                born.setdefault(row_id, version)
    return born


def _taken(
    attempt: Attempt, model: Model, states: list[State], born: Mapping[int, int], *, serializable: bool
) -> Iterator[str]:
    """Exactly the rows that match are gone, of all the files that the deletion comes after."""
    version, read = attempt.version, attempt.read_version
    if version is None or read is None or attempt.taken is None or version > model.latest:
        return
    by, rest = attempt.taken
    before, after = states[version - 1], states[version]
    seen = {row_id for file in states[read].values() for row_id in file.live_ids}
    for path, file in before.items():
        matches = attempt.job.partition in (None, file.partition)
        wanted = frozenset(at for at in file.left if matches and file.id_at(at) % by == rest)
        left = after[path].left if path in after else frozenset()
        if lost := file.left - left - wanted:
            yield f"{attempt.job.name} took the rows {sorted(lost)} of {path} that do not match"
        missed = []
        for at in sorted(wanted & left):
            row_id = file.id_at(at)
            if serializable or row_id in seen or not is_blind_append(model.commits[born[row_id]]):
                missed.append(at)
        if missed:
            yield f"{attempt.job.name} left the rows {missed} of {path}"
