"""The ledger: what was observed, what was run, and the newest state of each table of a fleet.

Each is a Delta table below the control root. Observations and runs are appended; `fleet` is replaced. A lost
ledger is rebuilt by the next observation, and loses only the history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.dml.write import write_deltalake
from delta_core.errors import ObjectNotFoundError, StorageError, TableExistsError, TableNotFoundError
from delta_core.fleet.ledger_schema import FLEET, OBSERVATIONS, RUNS, SCHEMAS
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store, options_for

if TYPE_CHECKING:
    from delta_core.fleet.plan import FleetPlan

DIRECTORY: Final = "ledger"
"""The directory of the ledger's tables below the control root."""

Row = dict[str, Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = frozenset(
    item.name for schema in SCHEMAS.values() for item in schema if pa.types.is_timestamp(item.type)
)
_TRIES = 5
_FAILED: Final = ("failed", "unknown")
_NEUTRAL: Final = ("busy", "not_due", "closed", "superseded", "circuit_open")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The ledger below a control root.

    Attributes:
        control_root: path or URI of the control root.
        storage_options: options of its store.
    """

    control_root: str
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    clock: Clock = SYSTEM_CLOCK

    def uri(self, table: str) -> str:
        """The URI of one of the ledger's tables: `observations`, `runs` or `fleet`."""
        return f"{self.control_root.rstrip('/')}/{DIRECTORY}/{table}"

    def options(self, table: str) -> dict[str, str]:
        """The storage options for one of the ledger's tables; empty for a local one."""
        return dict(options_for(self.uri(table), self.storage_options))

    # ------------------------------------------------------------ reads

    def fleet(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The newest state of each table, sorted by name; empty without a ledger."""
        return self._read("fleet", columns).sort_by([("name", "ascending"), ("uri", "ascending")])

    def runs(self, *, since: date | None = None, columns: Sequence[str] | None = None) -> list[Row]:
        """The rows of `runs` from a day on, in the order in which they started."""
        return self._recent("runs", since, columns, order="started_at")

    def observations(self, *, since: date | None = None, columns: Sequence[str] | None = None) -> list[Row]:
        """The rows of `observations` from a day on, in the order of time."""
        return self._recent("observations", since, columns, order="observed_at")

    def fleet_rows(self, columns: Sequence[str] | None = None) -> dict[str, Row]:
        """The rows of `fleet`, by URI."""
        return {row["uri"]: row for row in self.fleet_list(columns)}

    def fleet_list(self, columns: Sequence[str] | None = None) -> list[Row]:
        """The rows of `fleet`, sorted by name."""
        return _rows(self.fleet(columns))

    # ------------------------------------------------------------ writes

    def append(self, table: str, rows: Iterable[Row]) -> None:
        """Append rows to `observations` or `runs`. Creates the table when it does not exist. One commit.

        Raises:
            StorageError: the store fails.
            CommitStateUnknownError: it is unknown whether the rows were appended.
        """
        listed = list(rows)
        if listed:
            self._write(table, listed, mode="append")

    def replace_fleet(self, rows: Iterable[Row]) -> None:
        """Replace the rows of `fleet`. One commit."""
        self._write("fleet", list(rows), mode="overwrite")

    def today(self) -> date:
        """The day, in UTC."""
        return day_of(self.clock.now_ms())

    # ------------------------------------------------------------ plans

    def save_plan(self, plan: FleetPlan) -> None:
        """Store a plan below the control root. A plan with the same id is replaced. One request."""
        self.save(f"plans/{plan.plan_id}.json", plan.to_json())

    def load_plan(self, plan_id: int) -> dict[str, Any] | None:
        """The document of a stored plan, for `FleetPlan.from_json`; None without one. One request."""
        return self.load(f"plans/{plan_id}.json")

    def save(self, path: str, document: Mapping[str, Any]) -> None:
        """Store a JSON document below the control root. It is replaced when it exists. One request."""
        self._root().put(path, json.dumps(dict(document), separators=(",", ":")).encode())

    def load(self, path: str) -> dict[str, Any] | None:
        """A JSON document below the control root; None when it does not exist. One request."""
        try:
            document: dict[str, Any] = json.loads(self._root().read(path))
        except ObjectNotFoundError:
            return None
        return document

    def _root(self) -> Any:
        options = options_for(self.control_root, self.storage_options)
        return open_store(self.control_root, storage_options=options, clock=self.clock)

    # ------------------------------------------------------------ details

    def _read(self, table: str, columns: Sequence[str] | None, since: date | None = None) -> pa.Table:

        schema = SCHEMAS[table]
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        store = open_store(self.uri(table), storage_options=self.options(table), clock=self.clock)
        try:
            snapshot = Snapshot.load(store, clock=self.clock)
        except TableNotFoundError:
            return schema.empty_table()
        # A ledger of another release may lack a column or have more.
        known = {item.name for item in snapshot.schema}
        names = [name for name in schema.names if name in known]
        predicate = None if since is None else f"day >= DATE '{since.isoformat()}'"
        found = Scan(snapshot, columns=names, predicate=predicate).to_table()
        arrays = [
            found[item.name].cast(item.type) if item.name in known else pa.nulls(found.num_rows, item.type)
            for item in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _recent(
        self, table: str, since: date | None, columns: Sequence[str] | None, *, order: str
    ) -> list[Row]:
        names = None if columns is None else list(dict.fromkeys([*columns, order]))
        return _rows(self._read(table, names, since).sort_by(order))

    def _write(self, table: str, rows: list[Row], *, mode: Any) -> None:

        data = pa.Table.from_pylist(rows, schema=SCHEMAS[table])
        options = self.options(table)
        for remaining in range(_TRIES - 1, -1, -1):
            try:
                write_deltalake(
                    self.uri(table),
                    data,
                    mode=mode,
                    partition_by=None if table == "fleet" else ["day"],
                    schema_mode="merge" if mode == "append" else "overwrite",
                    configuration={"delta.checkpointInterval": "20"},
                    storage_options=options or None,
                    clock=self.clock,
                )
            except (TableExistsError, StorageError) as error:
                # Another batch created the table, or replaced the rows, at the same time.
                if not remaining or not (error.retryable or isinstance(error, TableExistsError)):
                    raise
            else:
                return


def _rows(table: pa.Table) -> list[Row]:
    """The rows of a table. Times are converted here, because Arrow imports pandas for them."""
    for index, item in enumerate(table.schema):
        if pa.types.is_timestamp(item.type):
            table = table.set_column(index, item.name, table.column(index).cast(pa.int64()))
    times = [item.name for item in table.schema if item.name in _TIMES]
    rows: list[Row] = table.to_pylist()
    for row in rows:
        for name in times:
            if row[name] is not None:
                row[name] = _EPOCH + timedelta(microseconds=row[name])
    return rows


def day_of(now_ms: int) -> date:
    """The day of a time, in UTC."""
    return instant(now_ms).date()


def days_ago(now_ms: int, days: int) -> date:
    """The day that was some days before a time, in UTC."""
    return day_of(now_ms) - timedelta(days=days)


def instant(now_ms: int) -> datetime:
    """A time in epoch milliseconds as a datetime in UTC."""
    return datetime.fromtimestamp(now_ms / 1000, tz=UTC)


def epoch_ms(value: datetime | None) -> int | None:
    """A datetime in epoch milliseconds."""
    return None if value is None else round(value.timestamp() * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHistory:
    """The history of one table, from the runs.

    Attributes:
        failures: number of verbs that failed since the last success or since the circuit was closed.
        last_error: the newest error of these.
        last_success_ms: the time of the last success, by verb.
        last: the newest row; None without one.
    """

    failures: int = 0
    last_error: str | None = None
    last_success_ms: Mapping[str, int] = field(default_factory=dict, hash=False)
    last: Mapping[str, Any] | None = field(default=None, hash=False)


def histories(runs: Iterable[Mapping[str, Any]]) -> dict[str, TableHistory]:
    """The history of each table, by URI. The rows must be in the order of time. Pure."""
    rows_of: dict[str, list[Mapping[str, Any]]] = {}
    for row in runs:
        rows_of.setdefault(row["uri"], []).append(row)
    return {uri: _history(rows) for uri, rows in rows_of.items()}


def _history(rows: list[Mapping[str, Any]]) -> TableHistory:
    failures, error = 0, None
    successes: dict[str, int] = {}
    for row in rows:
        if row["outcome"] in _FAILED:
            failures, error = failures + 1, row["error"]
        elif row["outcome"] not in _NEUTRAL:
            failures, error = 0, None
            successes[row["verb"]] = epoch_ms(row["finished_at"]) or 0
    return TableHistory(failures=failures, last_error=error, last_success_ms=successes, last=rows[-1])


__all__ = ["FLEET", "OBSERVATIONS", "RUNS", "Ledger", "TableHistory", "day_of", "histories", "instant"]
