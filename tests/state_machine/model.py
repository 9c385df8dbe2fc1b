"""What a table should be: a dict of rows by key, for every version, and what else a definition says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from tests.state_machine.values import Column

DAY_MS = 86_400_000
KEY = "id"
"""Each row has a key of its own, which no other row of the table ever has."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A predicate: its text, and whether it is true for a row; null is None."""

    text: str
    holds: Callable[[Row], bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The table at one version.

    Attributes:
        rows: by key.
        columns: in the schema's order.
        properties: those that were given; the table may have others, which the protocol gives it.
        constraints: by name.
        domains: the configuration of each domain of the user's.
    """

    rows: Mapping[int, Row] = field(default_factory=dict)
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    constraints: Mapping[str, Condition] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None

    @property
    def append_only(self) -> bool:
        """Whether rows may only be added."""
        return self.properties.get("delta.appendOnly") == "true"

    @property
    def records_changes(self) -> bool:
        """Whether the table keeps a change feed."""
        return self.properties.get("delta.enableChangeDataFeed") == "true"

    @property
    def tracks_rows(self) -> bool:
        """Whether each row has an id that it keeps."""
        return self.properties.get("delta.enableRowTracking") == "true"

    def column(self, name: str) -> Column | None:
        """The column of that name."""
        return next((found for found in self.columns if found.name == name), None)

    def with_rows(self, rows: Mapping[int, Row]) -> Self:
        """The same definition over other rows."""
        return replace(self, rows=dict(rows))

    def with_more(self, rows: Mapping[int, Row]) -> Self:
        """These rows too."""
        return self.with_rows({**self.rows, **rows})

    def without(self, condition: Condition) -> dict[int, Row]:
        """The rows for which a condition is not true."""
        return {key: row for key, row in self.rows.items() if condition.holds(row) is not True}

    def matching(self, condition: Condition) -> dict[int, Row]:
        """The rows for which a condition is true."""
        return {key: row for key, row in self.rows.items() if condition.holds(row) is True}

    def break_a_constraint(self, rows: Mapping[int, Row]) -> bool:
        """Whether one of these rows does; null is no truth."""
        return any(one.holds(row) is not True for one in self.constraints.values() for row in rows.values())

    def visible(self) -> list[dict[str, Any]]:
        """The rows as a reader sees them: columns added later are null in older rows."""
        names = [column.name for column in self.columns]
        return [{name: row.get(name) for name in names} for row in self.rows.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version, and when it was committed, in epoch milliseconds."""

    state: State
    time_ms: int


class Model:
    """All versions of a table, and which of them are promised to be readable."""

    def __init__(self, state: State, time_ms: int) -> None:
        self.versions = [Version(state=state, time_ms=time_ms)]
        self.transactions: dict[str, int] = {}
        self._promised_from = 0

    @property
    def latest(self) -> int:
        """The newest version's number."""
        return len(self.versions) - 1

    @property
    def state(self) -> State:
        """The newest version."""
        return self.versions[-1].state

    def at(self, version: int) -> State:
        """The table at a version."""
        return self.versions[version].state

    def add(self, state: State, time_ms: int) -> None:
        """One more version, committed then, or a millisecond after the last one if the clock stood still."""
        self.versions.append(Version(state=state, time_ms=max(time_ms, self.versions[-1].time_ms + 1)))

    def promised(self) -> range:
        """The versions that must be readable."""
        return range(self._promised_from, len(self.versions))

    def promise_from(self, version: int) -> None:
        """Older ones may be gone; what was given up once does not come back."""
        self._promised_from = max(self._promised_from, min(version, self.latest))

    def first_within(self, cutoff_ms: int) -> int:
        """The version that was current at a time: the oldest one that somebody may have seen since."""
        current = [number for number, one in enumerate(self.versions) if one.time_ms <= cutoff_ms]
        return current[-1] if current else 0
