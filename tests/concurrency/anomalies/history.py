"""What transactions saw and did, as values, and a reader of logs that shares nothing with the library's.

A row is (id, partition, value). A value lists the transactions that wrote the row, oldest first: an insert by
`t1` makes `t1`, an update by `t2` makes `t1,t2`. What a transaction writes on the way and replaces before it
commits ends with `~`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.transaction.isolation import IsolationLevel
from tests.concurrency.matrix.footprint import Box

Row = tuple[int, str, str]
DRAFT = "~"


class Objects(Protocol):
    """Where a table lies."""

    def read(self, path: str) -> bytes: ...

    def paths(self) -> set[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The rows that a predicate gave."""

    box: Box
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a transaction as its client saw it.

    Attributes:
        read_version: the version that it began on.
        version: what it was told that it committed; None for readers and for those that conflicted.
        blind: it only appended and read nothing.
        rearranges: it promised to change no row.
    """

    name: str
    read_version: int
    version: int | None = None
    reads: tuple[Read, ...] = ()
    blind: bool = False
    rearranges: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version of the log.

    Attributes:
        name: of the transaction, from the provenance.
        added, removed: the net change: rows of files that went and of files that came are in neither.
        removed_twice: files removed that were not live.
    """

    version: int
    name: str
    added: Mapping[Row, int]
    removed: Mapping[Row, int]
    removed_twice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything to be judged."""

    level: IsolationLevel
    start_version: int
    start: Mapping[Row, int]
    commits: tuple[Commit, ...]
    attempts: tuple[Attempt, ...]


def matches(box: Box, row: Row) -> bool:
    """Whether a predicate is true for a row."""
    return row[1] == box.partition and box.low <= row[0] <= box.high


class LogReader:
    """Follows a table's log, version by version, with a JSON parser and a Parquet reader."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._live: dict[str, Counter[Row]] = {}
        self.version = -1

    @property
    def rows(self) -> Counter[Row]:
        """The rows of the version that was read last."""
        return sum(self._live.values(), Counter())

    def next(self) -> Commit | None:
        """The next version; None when there is none."""
        name = f"_delta_log/{self.version + 1:020}.json"
        if name not in self._objects.paths():
            return None
        self.version += 1
        actions = [json.loads(line) for line in self._objects.read(name).splitlines() if line.strip()]
        info = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        added: Counter[Row] = Counter()
        removed: Counter[Row] = Counter()
        twice = []
        for remove in (a["remove"] for a in actions if "remove" in a):
            rows = self._live.pop(remove["path"], None)
            if rows is None:
                twice.append(remove["path"])
            else:
                removed += rows
        for add in (a["add"] for a in actions if "add" in a):
            self._live[add["path"]] = self._rows(add)
            added += self._live[add["path"]]
        return Commit(
            version=self.version,
            name=info.get("userMetadata") or "",
            added=added - removed,
            removed=removed - added,
            removed_twice=tuple(twice),
        )

    def _rows(self, add: dict[str, Any]) -> Counter[Row]:
        source = pa.BufferReader(self._objects.read(unquote(add["path"])))
        table = pq.read_table(source, columns=["id", "v"]).to_pydict()
        partition = add["partitionValues"]["p"]
        return Counter(
            (number, partition, value) for number, value in zip(table["id"], table["v"], strict=True)
        )
