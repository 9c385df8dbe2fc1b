"""The rows of the ledger that an observation becomes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from delta_core.fleet.ledger import Row, TableHistory, day_of, epoch_ms, instant
from delta_core.fleet.observe import Before, Observation
from delta_core.fleet.registry import FleetTable

_COPIED = (
    "num_files",
    "total_bytes",
    "small_files",
    "compactable_files",
    "unclustered_bytes",
    "log_tail_commits",
    "checkpoint_version",
    "expired_tombstones",
    "expired_tombstone_bytes",
)


def before_of(rows: Mapping[str, Row], history: Mapping[str, TableHistory]) -> dict[str, Before]:
    """The ledger's knowledge of each table, for its next observation, by URI."""
    return {
        uri: Before(seen=row["seen"], failures=history.get(uri, TableHistory()).failures)
        for uri, row in rows.items()
    }


def observation_row(observation: Observation, *, run_id: str) -> Row:
    """The row of `observations` for an observation."""
    row: Row = {
        "day": day_of(observation.observed_ms),
        "observed_at": instant(observation.observed_ms),
        "run_id": run_id,
        "unchanged": observation.unchanged,
        "name": observation.table.name,
        "uri": observation.table.uri,
        "seen": observation.seen,
    }
    if observation.error is not None:
        row["error_code"], row["error"] = observation.error
    outlook, layout, result = observation.outlook, observation.layout, observation.score
    if outlook is None or layout is None or result is None:
        return row
    health = outlook.health
    return row | {
        "table_id": health.table_id,
        "version": health.version,
        **{name: getattr(health, name) for name in _COPIED},
        "score": result.total,
        "sub_scores": [part.to_json() for part in result.parts],
        "reasons": list(result.reasons),
        "due": list(observation.due),
        "rows": layout.rows,
        "deleted_rows": layout.deleted_rows,
        "size_histogram": list(layout.histogram),
        "commits_by_hour_of_week": list(layout.hours),
        "decisions": json.dumps([decision.to_json() for decision in outlook.decisions]),
        "compaction": json.dumps(dict(outlook.compaction)),
    }


def fleet_row(observed: Row, table: FleetTable, *, history: TableHistory, before: Row | None) -> Row:
    """The row of `fleet` for a table.

    Args:
        observed: the newest row of `observations` of the table.
        table: the table with its policy.
        history: the table's history.
        before: the row that this one replaces. The time since when a verb is due comes from there.
    """
    row = {name: value for name, value in observed.items() if name not in ("day", "run_id", "unchanged")}
    last = history.last or {}
    earlier = json.loads((before or {}).get("due_since") or "{}")
    observed_ms = epoch_ms(observed["observed_at"])
    if observed.get("error_code") is not None:
        since = earlier
    else:
        since = {verb: earlier.get(verb, observed_ms) for verb in observed.get("due") or ()}
    return row | {
        "owner": table.policy.owner,
        "visible_with": table.policy.visible_with,
        "mode": table.policy.mode.value,
        "managed": table.managed,
        "failures": history.failures,
        "circuit_open": history.failures >= table.policy.max_failures,
        "last_error": history.last_error,
        "last_verb": last.get("verb"),
        "last_outcome": last.get("outcome"),
        "last_run_at": last.get("finished_at"),
        "due_since": json.dumps(since),
    }


def fleet_rows(
    tables: Iterable[FleetTable],
    observed: Mapping[str, Row],
    *,
    history: Mapping[str, TableHistory],
    before: Mapping[str, Row],
) -> list[Row]:
    """The rows of `fleet`: those of the tables of the registry that have been observed.

    Args:
        tables: the tables of the registry.
        observed: the newest row of `observations` of each table, by URI. A table without one keeps its row.
        history: the history of each table, by URI.
        before: the rows that these replace, by URI.
    """
    rows = []
    for table in tables:
        old = before.get(table.uri)
        newest: Any = observed.get(table.uri) or old
        if newest is None:
            continue
        own = history.get(table.uri, TableHistory())
        rows.append(fleet_row(newest, table, history=own, before=old) | {"name": table.name})
    return rows
