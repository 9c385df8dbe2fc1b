"""The evidence that the checks read, and the result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from demo import raw_data
from demo.profiles import PROFILES, Profile
from demo.table_reader import TableReader

KEYS = {"flights": ["time_hour", "carrier", "flight", "origin"], "weather": ["time_hour", "origin"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One expectation and whether it held."""

    name: str
    held: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The recorded facts, their tables, and the raw data."""

    facts: dict[str, Any]

    @cached_property
    def profile(self) -> Profile:
        return PROFILES[self.facts["profile"]]

    @cached_property
    def tables(self) -> dict[str, TableReader]:
        return {feed: TableReader(path=Path(path)) for feed, path in self.facts["tables"].items()}

    @cached_property
    def raw(self) -> dict[str, pa.Table]:
        return {feed: raw_data.read(feed, months=self.profile.months) for feed in self.profile.feeds}

    def raw_months(self, feed: str, months: tuple[int, ...]) -> pa.Table:
        table = self.raw[feed]
        return table.filter(pc.is_in(table["month"], pa.array(months, table["month"].type)))

    def version(self, point: str, feed: str) -> int:
        """The version of the table at a point of the scenario."""
        return int(self.facts["points"][point][feed])

    def runs(self, purpose: str) -> list[dict[str, Any]]:
        return [run for run in self.facts["runs"] if run["purpose"] == purpose]

    def run(self, purpose: str) -> dict[str, Any]:
        """The only run with the purpose.

        Raises:
            ValueError: no run or more than one run has the purpose.
        """
        (run,) = self.runs(purpose)
        return run


def task_states(run: dict[str, Any], task_id: str) -> list[str | None]:
    """The states of a task's instances: one, one per map index, or an empty list if the task is absent."""
    return [task["state"] for task in run["tasks"] if task["task_id"] == task_id]
