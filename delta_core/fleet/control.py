"""The steps of a run: observe and record, rebuild the state, plan, report. Each can be its own process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.fleet.ledger import Ledger, Row, TableHistory, days_ago, histories, instant
from delta_core.fleet.ledger_schema import FLEET
from delta_core.fleet.observe import Observation
from delta_core.fleet.plan import FleetPlan, make_plan
from delta_core.fleet.registry import FleetTable, Registry
from delta_core.fleet.report import FleetReport, fleet_report
from delta_core.fleet.rows import before_of, fleet_rows, observation_row
from delta_core.fleet.workers import observe_in_processes
from delta_core.policies.fleet_model import BudgetPolicy

HISTORY_DAYS: Final = 35
"""How many days of runs decide on failures, cool-downs and costs."""

MAX_BATCHES: Final = 32
"""The most batches of a run."""

_HISTORY_COLUMNS: Final = (
    *("started_at", "finished_at", "plan_id", "uri", "verb", "outcome", "error"),
    *("predicted_files", "predicted_bytes", "actual_files", "actual_bytes", "cpu_seconds", "money"),
)


@dataclass(frozen=True, kw_only=True)
class Control:
    """A registry with its ledger. Reads each part of the ledger once.

    Attributes:
        registry: the tables.
        ledger: the ledger.
        storage_options: options of the stores of the tables.
    """

    registry: Registry
    ledger: Ledger
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    clock: Clock = SYSTEM_CLOCK

    @cached_property
    def runs(self) -> list[Row]:
        """The runs of the last weeks, in the order of time, with the columns that decisions depend on."""
        since = days_ago(self.clock.now_ms(), HISTORY_DAYS)
        return self.ledger.runs(since=since, columns=_HISTORY_COLUMNS)

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The rows of `fleet` when they were first read, by URI."""
        return self.ledger.fleet_rows()

    @cached_property
    def history(self) -> dict[str, TableHistory]:
        """The history of each table, by URI."""
        return histories(self.runs)

    def batch(self, index: int, count: int) -> Sequence[FleetTable]:
        """The tables of one of `count` batches of observations."""
        if not 0 <= index < count:
            raise ConfigurationError(f"There is no batch {index} of {count}.", fix="Count batches from 0.")
        return self.registry.tables[index::count]

    def observe(self, tables: Iterable[FleetTable], *, run_id: str, jobs: int = 1) -> list[Observation]:
        """Observe tables, in so many processes, and append the observations to the ledger, in one commit."""
        # A batch of many needs one column of `fleet`, and not all of them.
        rows = self.__dict__.get("rows") or self.ledger.fleet_rows(("name", "uri", "seen"))
        found = observe_in_processes(
            list(tables),
            before=before_of(rows, self.history),
            storage_options=self.storage_options,
            clock=self.clock,
            jobs=jobs,
        )
        self.ledger.append("observations", (observation_row(item, run_id=run_id) for item in found))
        return found

    def rebuild(self, observed: Iterable[Row] | None = None, *, run_id: str | None = None) -> dict[str, Row]:
        """Replace the rows of `fleet`, and return them by URI.

        Args:
            observed: rows of `observations`; None reads those of the run from the ledger.
            run_id: the run whose observations are read.
        """
        if observed is None:
            since = days_ago(self.clock.now_ms(), 2)
            observed = [row for row in self.ledger.observations(since=since) if row["run_id"] == run_id]
        newest = {row["uri"]: row for row in observed}
        rows = fleet_rows(self.registry.tables, newest, history=self.history, before=self.rows)
        self.ledger.replace_fleet(rows)
        return {row["uri"]: {**dict.fromkeys(FLEET.names), **row} for row in rows}

    def refresh(self, *, run_id: str, jobs: int = 1) -> dict[str, Row]:
        """Observe every table, record it, and return the rows of `fleet` by URI."""
        _ = self.rows  # Read once for both steps.
        found = self.observe(self.registry.tables, run_id=run_id, jobs=jobs)
        return self.rebuild([observation_row(item, run_id=run_id) for item in found])

    def rebuild_one(self, table: FleetTable, *, run_id: str) -> Row:
        """Observe one table, record it, and return its row of `fleet`."""
        found = self.observe([table], run_id=run_id)
        return self.rebuild([observation_row(item, run_id=run_id) for item in found])[table.uri]

    def plan(
        self,
        rows: Mapping[str, Row],
        *,
        run_id: str,
        plan_id: int | None = None,
        budget: BudgetPolicy | None = None,
        ignore_windows: bool = False,
    ) -> FleetPlan:
        """The plan of a run for these rows of `fleet`."""
        fleet = self.registry.policies.model.fleet
        now_ms = self.clock.now_ms()
        return make_plan(
            self.registry.tables,
            rows,
            self.runs,
            plan_id=now_ms if plan_id is None else plan_id,
            run_id=run_id,
            now_ms=now_ms,
            budget=fleet.budget if budget is None else budget,
            price_per_cpu_hour=fleet.price_per_cpu_hour,
            ignore_windows=ignore_windows,
        )

    def close_circuit(self, table: FleetTable, *, provenance: str | None = None) -> None:
        """Forget the failures of a table, so that its verbs run again. Two commits to the ledger."""
        now_ms = self.clock.now_ms()
        row: dict[str, Any] = {
            "day": self.ledger.today(),
            "started_at": instant(now_ms),
            "finished_at": instant(now_ms),
            "run_id": "circuit",
            "name": table.name,
            "uri": table.uri,
            "verb": "circuit",
            "outcome": "closed_by_hand",
            "provenance": provenance,
        }
        self.ledger.append("runs", [row])
        for name in ("runs", "history"):
            self.__dict__.pop(name, None)
        self.rebuild([])


def report_of(
    ledger: Ledger, *, run_id: str | None = None, deferred: Iterable[Mapping[str, str]] = ()
) -> FleetReport:
    """The report of a run, from the ledger.

    Args:
        ledger: the ledger.
        run_id: the run; None takes the newest one in the ledger.
        deferred: what the run's plan deferred.
    """
    now_ms = ledger.clock.now_ms()
    runs = [row for row in ledger.runs(since=days_ago(now_ms, HISTORY_DAYS)) if row["verb"] != "circuit"]
    if run_id is None and runs:
        run_id = runs[-1]["run_id"]
    rows = ledger.fleet_rows().values()
    return fleet_report(rows, runs, deferred=deferred, run_id=run_id, created_ms=now_ms)
