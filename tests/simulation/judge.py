"""Holds a history against what was promised, from the store's raw bytes: the library reads nothing here."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.history import Attempt, Kind, Plan, Record, labelled
from tests.simulation.store import Change, Entry

_COMMIT = re.compile(r"_delta_log/([0-9]{20})\.json")
_DELETION_VECTOR_FILE = re.compile(r"(?:.*/)?deletion_vector_[0-9a-f-]{36}\.bin")


@dataclass(slots=True)
class Model:
    """The log as it came to be.

    Attributes:
        commits: for each version the actions it was created with.
        states: for each version the live paths.
        newest: after each change in the ledger the newest version; -1 before the first.
        buried: versions that were created again, with other bytes, after cleanup had deleted them; no
            reader gets to these.
        faults: what is wrong with the log by itself.
    """

    commits: list[list[dict[str, Any]]] = field(default_factory=list)
    states: list[frozenset[str]] = field(default_factory=list)
    newest: list[int] = field(default_factory=list)
    buried: list[tuple[int, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, ledger: Sequence[Entry]) -> Model:
        """Replay the ledger."""
        model = cls()
        first: dict[int, bytes] = {}
        for entry in ledger:
            match = _COMMIT.fullmatch(entry.path)
            if match is not None and entry.change is not Change.DELETED:
                model._see(int(match[1]), entry, first)
            model.newest.append(len(model.commits) - 1)
        return model

    @property
    def latest(self) -> int:
        """The newest version."""
        return len(self.commits) - 1

    def versions_of(self, txn_id: str) -> list[int]:
        """The versions that a transaction is in."""
        return [v for v, actions in enumerate(self.commits) if txn_id_of(actions) == txn_id]

    def versions_with_key(self, app_id: str) -> list[int]:
        """The versions that set an application's transaction version."""
        return [v for v, actions in enumerate(self.commits) if _has_key(actions, app_id)]

    def _see(self, version: int, entry: Entry, first: dict[int, bytes]) -> None:
        if entry.change is Change.REPLACED:
            self.faults.append(f"version {version} was written in place")
            return
        if version in first:
            if first[version] != entry.data:
                self.buried.append((version, txn_id_of(parse_commit(entry.data))))
            return
        if version != len(self.commits):
            self.faults.append(f"version {version} was created after version {self.latest}")
            return
        first[version] = entry.data
        actions = parse_commit(entry.data)
        self.commits.append(actions)
        self._replay(version, actions)

    def _replay(self, version: int, actions: list[dict[str, Any]]) -> None:
        live = set(self.states[-1]) if self.states else set()
        labels = [_label(action["remove"]) for action in actions if "remove" in action]
        # A drop of deletionVectors writes tombstones of the vectors' files, which are no data files.
        removed = [label for label in labels if not _DELETION_VECTOR_FILE.fullmatch(label)]
        added = [_label(action["add"]) for action in actions if "add" in action]
        for file in removed:
            if file not in live:
                self.faults.append(f"version {version} removes {file}, which is not live")
            live.discard(file)
        again = {_label(a["add"]) for a in actions if "add" in a and not a["add"]["dataChange"]}
        for file in added:
            # A file may be added again as it is, to say something else of it.
            if file in live and file in again:
                continue
            if file.partition("#")[0] in {other.partition("#")[0] for other in live}:
                self.faults.append(f"version {version} adds {file}, which is live")
            live.add(file)
        self.states.append(frozenset(live))


def _label(file: dict[str, Any]) -> str:
    return labelled(file["path"], (file.get("deletionVector") or {}).get("pathOrInlineDv"))


def judge(plan: Plan, record: Record, ledger: Sequence[Entry]) -> list[str]:
    """What was promised and not kept, in words; empty when all was kept."""
    model = Model.of(ledger)
    return [
        *record.broken,
        *model.faults,
        *_unique_transactions(model),
        *_results(model, record),
        *_keys(model, plan, record),
        *_observations(model, plan, record),
        *_lost_updates(model, plan, record),
        *(_commit_times(model) if "inCommitTimestamp" in plan.features and not plan.drops else ()),
        *(_row_ids(model) if "rowTracking" in plan.features and not plan.drops else ()),
    ]


def _commit_times(model: Model) -> Iterator[str]:
    """Each commit begins with its time, which is later than the one before."""
    last = -1
    for version, actions in enumerate(model.commits):
        time = actions[0].get("commitInfo", {}).get("inCommitTimestamp")
        if not isinstance(time, int) or time <= last:
            yield f"version {version} is of the in-commit time {time}, the one before of {last}"
        last = time if isinstance(time, int) else last


def _row_ids(model: Model) -> Iterator[str]:
    """Each row has an id of its own, above the watermark before its commit and not above the one after."""
    watermark = -1
    for version, actions in enumerate(model.commits):
        before, top = watermark, watermark
        for domain in (a["domainMetadata"] for a in actions if "domainMetadata" in a):
            watermark = json.loads(domain["configuration"])["rowIdHighWaterMark"]
        again = {a["remove"]["path"] for a in actions if "remove" in a}
        for add in (a["add"] for a in actions if "add" in a):
            if add["path"] in again:
                continue  # It keeps its numbers, as `rows_judge` sees to.
            first, rows = add.get("baseRowId", -1), json.loads(add["stats"])["numRecords"]
            if first <= top:
                yield f"version {version} gives ids from {first} on, and {top} was given before"
            top = max(top, first + rows - 1)
            if add.get("defaultRowCommitVersion") != version:
                yield f"version {version} adds rows of version {add.get('defaultRowCommitVersion')}"
        if watermark < top or watermark < before:
            yield f"version {version} has the watermark {watermark} after {before}, and rows up to {top}"


def _unique_transactions(model: Model) -> Iterator[str]:
    versions: defaultdict[str, list[int]] = defaultdict(list)
    for version, actions in enumerate(model.commits):
        versions[txn_id_of(actions)].append(version)
    for txn_id, found in versions.items():
        if len(found) > 1:
            yield f"versions {found} are one transaction, {txn_id}"


def _results(model: Model, record: Record) -> Iterator[str]:
    """Acknowledged: in exactly the version named. Refused: in none. Unknown: in at most the one named."""
    buried = {txn_id: version for version, txn_id in model.buried}
    for attempt in record.attempts:
        if not attempt.txn_id:
            continue
        found = model.versions_of(attempt.txn_id)
        what = f"{attempt.job.name} ({attempt.outcome}, {attempt.txn_id})"
        match attempt.outcome:
            case "committed":
                if not found and attempt.txn_id in buried:
                    yield f"{what} was acknowledged as version {attempt.version}, below the log's tail"
                elif found != [attempt.version]:
                    yield f"{what} was acknowledged as version {attempt.version} and is in {found}"
            case "already applied" | "error":
                # An error after the transaction began must come before anything was sent.
                if found:
                    yield f"{what} did nothing and is in {found}"
            case "conflict" | "rejected":
                if found:
                    yield f"{what} was refused ({attempt.detail}) and is in {found}"
                if attempt.txn_id in buried and not attempt.files_referenced:
                    yield f"{what} was refused, and version {buried[attempt.txn_id]} names its files"
            case "unknown":
                if found and found != [attempt.version]:
                    yield f"{what} may be version {attempt.version} and is in {found}"


def _keys(model: Model, plan: Plan, record: Record) -> Iterator[str]:
    """A job with a key is applied once when a run of it was acknowledged, else at most once."""
    names = {job.name for jobs in plan.jobs for job in jobs if job.kind is Kind.KEYED_APPEND}
    done = {a.job.name for a in record.attempts if a.outcome in ("committed", "already applied")}
    for name in sorted(names):
        versions = model.versions_with_key(name)
        if len(versions) > 1:
            yield f"{name} was applied {len(versions)} times, in {versions}"
        if name in done and not versions:
            yield f"{name} was acknowledged and is in no version"


def _observations(model: Model, plan: Plan, record: Record) -> Iterator[str]:
    """Who saw a version saw what it holds, and not less than before; on consistent stores than there was."""
    floors: defaultdict[int, int] = defaultdict(lambda: -1)
    for event in record.events:
        if isinstance(event, Attempt):
            if event.seen is not None:
                yield from _same(model, event.seen[0], event.seen[1], f"{event.job.name} after its commit")
                if event.version is not None and event.seen[0] < event.version:
                    yield f"{event.job.name} was given version {event.seen[0]} after {event.version}"
            if event.outcome == "crashed":
                floors.pop(event.worker, None)
            elif event.outcome == "committed" and event.version is not None:
                floors[event.worker] = max(event.version, floors[event.worker])
            continue
        yield from _same(model, event.version, event.paths, f"worker {event.worker}")
        if event.pinned:
            continue
        newest = model.newest[event.began - 1] if event.began and not plan.faults.weak else -1
        floor = max(newest, floors[event.worker])
        if event.version < floor:
            yield f"worker {event.worker} saw version {event.version} although {floor} was there before"
        floors[event.worker] = max(floor, event.version)


def _same(model: Model, version: int, paths: frozenset[str], who: str) -> Iterator[str]:
    if version > model.latest:
        yield f"{who} saw version {version}, the newest is {model.latest}"
    elif paths != model.states[version] and any(version == lost for lost, _ in model.buried):
        yield f"{who} saw version {version} as it was written again below the log's tail"
    elif paths != model.states[version]:
        difference = sorted(paths ^ model.states[version])
        yield f"{who} saw version {version} with other files: {difference}"


def _lost_updates(model: Model, plan: Plan, record: Record) -> Iterator[str]:
    """What a job read was not changed between the version that it read and the one that it became."""
    serializable = plan.configuration.get("delta.isolationLevel") == "Serializable"
    for attempt in record.attempts:
        if attempt.outcome != "committed" or attempt.job.kind not in (Kind.OVERWRITE, Kind.DELETE):
            continue
        if attempt.version is None or attempt.read_version is None or attempt.version > model.latest:
            continue
        own = {a["remove"]["path"] for a in model.commits[attempt.version] if "remove" in a}
        for version in range(attempt.read_version + 1, attempt.version):
            actions = model.commits[version]
            if any(_read(attempt, a["remove"], own) for a in actions if "remove" in a):
                yield f"{attempt.job.name} lost the removal in version {version}"
            if is_blind_append(actions) and not serializable:
                continue
            if any(_read(attempt, a["add"], None) for a in actions if "add" in a):
                yield f"{attempt.job.name} did not see the rows of version {version}"


def _read(attempt: Attempt, action: dict[str, Any], own: set[str] | None) -> bool:
    """Whether a file with rows is one that the job read, or would have read."""
    if not action["dataChange"]:
        return False
    if own is not None and attempt.job.kind is Kind.DELETE:
        # It names the files that it reads; of others only the rows that came are its business.
        return attempt.job.partition is None or action["path"] in own
    return attempt.job.partition in (None, action["partitionValues"]["p"])


def is_blind_append(actions: list[dict[str, Any]]) -> bool:
    """Whether a commit's writer said that it looked at no row."""
    info = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    return bool(info.get("isBlindAppend")) and not any("remove" in action for action in actions)


def _has_key(actions: list[dict[str, Any]], app_id: str) -> bool:
    return any(action["txn"]["appId"] == app_id for action in actions if "txn" in action)


def txn_id_of(actions: list[dict[str, Any]]) -> str:
    """The transaction id of a commit; empty without one."""
    for action in actions:
        if "commitInfo" in action:
            return str(action["commitInfo"].get("txnId", ""))
    return ""


def parse_commit(data: bytes) -> list[dict[str, Any]]:
    """A commit's actions, by Python's own JSON."""
    return [json.loads(line) for line in data.splitlines() if line]
