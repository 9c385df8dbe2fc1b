"""Anomalies in a history, in the manner of Elle, in one pass: the versions of the log are a total order.

The names are Adya's. Since every commit is atomic and has one place in the order, a cycle of dependencies
shows as a single dependency that points against it:

* G0 (dirty write): a row's writers are not in the order of their versions.
* G1a (aborted read), G1b (intermediate read): a row that was read or is in the table was written by a
  transaction that never committed, or is not the last that it wrote.
* G1c (circular information flow): a transaction read what was committed after itself.
* lost update: a row was replaced by a version of it that does not build on the newest one.
* read skew (G-single): what a transaction read is no single version of the table.
* write skew (G2-item): a row that a writer had read was changed before it committed.
* phantom (G2): a row that a writer would have read appeared before it committed. Under WriteSerializable
  blind appends may: they are ordered after the writer.
* rearranged rows: a commit that changes no row by its own word changed some.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from delta_core.transaction.isolation import IsolationLevel
from tests.concurrency.anomalies.history import DRAFT, Attempt, Commit, History, Read, Row, matches


class Kind(StrEnum):
    """What can go wrong."""

    G0 = "G0"
    G1A = "G1a"
    G1B = "G1b"
    G1C = "G1c"
    LOST_UPDATE = "lost update"
    READ_SKEW = "read skew"
    WRITE_SKEW = "write skew"
    PHANTOM = "phantom"
    REARRANGED_ROWS = "rearranged rows"
    LOST_COMMIT = "lost commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One finding."""

    kind: Kind
    transaction: str
    detail: str


def writers(row: Row) -> list[str]:
    """The transactions that wrote a row, oldest first."""
    return row[2].removesuffix(DRAFT).split(",")


def find_anomalies(history: History) -> list[Anomaly]:
    """Every anomaly. Time is linear in the rows that commits change and transactions read."""
    return list(_Check(history).run())


def reorderings(history: History) -> int:
    """How often a blind append that a writer would have read was committed before it."""
    check = _Check(history)
    return sum(
        check.is_blind_insert(row, commit)
        for attempt in history.attempts
        if attempt.version is not None
        for commit in check.between(attempt)
        for read in attempt.reads
        for row in commit.added
        if matches(read.box, row)
    )


class _Check:
    def __init__(self, history: History) -> None:
        self._history = history
        self._commits = {commit.version: commit for commit in history.commits}
        self._versions = {commit.name: commit.version for commit in history.commits if commit.name}
        self._attempts = {attempt.name: attempt for attempt in history.attempts}
        self._initial = {writer for row in history.start for writer in writers(row)}
        self._readers: dict[int, list[Attempt]] = defaultdict(list)
        for attempt in history.attempts:
            self._readers[attempt.read_version].append(attempt)

    def run(self) -> Iterator[Anomaly]:
        state = Counter(self._history.start)
        yield from self._reads_at(self._history.start_version, state)
        for commit in self._history.commits:
            yield from self._commit(commit, state)
            state.update(commit.added)
            state.subtract(commit.removed)
            state = +state
            yield from self._reads_at(commit.version, state)
        yield from self._told()
        for attempt in self._history.attempts:
            if attempt.version is not None:
                yield from self._between(attempt)

    # ------------------------------------------------------------ what a commit wrote

    def _commit(self, commit: Commit, state: Counter[Row]) -> Iterator[Anomaly]:
        attempt = self._attempts.get(commit.name)
        if attempt is not None and attempt.rearranges and (commit.added or commit.removed):
            yield _found(Kind.REARRANGED_ROWS, commit.name, f"{dict(commit.added)} {dict(commit.removed)}")
        if commit.removed_twice:
            yield _found(Kind.LOST_UPDATE, commit.name, f"{commit.removed_twice} were not live")
        for row in commit.added:
            yield from self._written(row, commit.name)
            names = writers(row)
            if names[-1] == commit.name and len(names) > 1:
                before = (row[0], row[1], ",".join(names[:-1]))
                if state[before] < 1:
                    yield _found(Kind.LOST_UPDATE, commit.name, f"{row} does not follow the newest version")

    def _written(self, row: Row, by: str) -> Iterator[Anomaly]:
        names = writers(row)
        if row[2].endswith(DRAFT):
            yield _found(Kind.G1B, by, f"{row} was replaced by its writer")
        unknown = [name for name in names if name not in self._versions and name not in self._initial]
        if unknown:
            yield _found(Kind.G1A, by, f"{row} was written by {unknown[0]}, which did not commit")
        places = [self._versions.get(name, -1) for name in names]
        if not unknown and places != sorted(places):
            yield _found(Kind.G0, by, f"{row} was written in the order of versions {places}")

    # ------------------------------------------------------------ what a transaction read

    def _reads_at(self, version: int, state: Counter[Row]) -> Iterator[Anomaly]:
        for attempt in self._readers[version]:
            for read in attempt.reads:
                yield from self._read(attempt, read, state)

    def _read(self, attempt: Attempt, read: Read, state: Counter[Row]) -> Iterator[Anomaly]:
        there = Counter({row: count for row, count in state.items() if matches(read.box, row)})
        seen = Counter(read.rows)
        if seen == there:
            return
        explained = False
        for row in seen - there:
            for anomaly in self._written(row, attempt.name):
                explained = True
                yield anomaly
            newest = max(self._versions.get(name, -1) for name in writers(row))
            if attempt.version is not None and newest > attempt.version:
                explained = True
                yield _found(Kind.G1C, attempt.name, f"{row} was committed in version {newest}")
        if not explained:
            yield _found(
                Kind.READ_SKEW,
                attempt.name,
                f"version {attempt.read_version} plus {dict(seen - there)} less {dict(there - seen)}",
            )

    # ------------------------------------------------------------ what happened before it committed

    def between(self, attempt: Attempt) -> Iterator[Commit]:
        """The commits that a committed transaction did not see."""
        for version in range(attempt.read_version + 1, attempt.version or 0):
            if version in self._commits:
                yield self._commits[version]

    def is_blind_insert(self, row: Row, commit: Commit) -> bool:
        """Whether a commit that only appended brought the row."""
        attempt = self._attempts.get(commit.name)
        return attempt is not None and attempt.blind and row[2] == commit.name

    def _between(self, attempt: Attempt) -> Iterator[Anomaly]:
        weak = self._history.level is IsolationLevel.WRITE_SERIALIZABLE
        own = self._commits[attempt.version].removed if attempt.version in self._commits else {}
        written = {row[:2] for row in own}
        for commit in self.between(attempt):
            for read in attempt.reads:
                for row in commit.removed:
                    if matches(read.box, row):
                        kind = Kind.LOST_UPDATE if row[:2] in written else Kind.WRITE_SKEW
                        yield _found(kind, attempt.name, f"{row} was read; changed by {commit.name}")
                for row in commit.added:
                    changed = any(row[:2] == old[:2] for old in commit.removed)
                    allowed = weak and self.is_blind_insert(row, commit)
                    if matches(read.box, row) and not changed and not allowed:
                        yield _found(Kind.PHANTOM, attempt.name, f"{row} appeared by {commit.name}")

    def _told(self) -> Iterator[Anomaly]:
        """Whether clients were told the truth."""
        for attempt in self._history.attempts:
            if attempt.version is not None and self._versions.get(attempt.name) != attempt.version:
                yield _found(Kind.LOST_COMMIT, attempt.name, f"version {attempt.version} is not its own")
            if attempt.version is None and attempt.name in self._versions:
                yield _found(Kind.LOST_COMMIT, attempt.name, "committed, but its client was told otherwise")


def _found(kind: Kind, transaction: str, detail: str) -> Anomaly:
    return Anomaly(kind=kind, transaction=transaction, detail=detail)
