"""Observation of a fleet: facts, score and decisions of each table, with one listing for an unchanged one."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from delta_core.boundary import typed_error
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import DeltaError
from delta_core.fleet.facts import LayoutFacts, layout_facts
from delta_core.fleet.registry import FleetTable
from delta_core.fleet.score import Score, score
from delta_core.log.listing import list_log
from delta_core.maintenance.observe import LastObservation, Outlook, asked, look, look_again
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.open import open_store, options_for
from delta_core.storage.uri import uri_scheme

_LOGGER = logging.getLogger(__name__)
_REMOTE_TABLES_AT_ONCE = 16
_HISTORY_LIMIT = 16
_SECTION = "layout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The ledger's knowledge of a table.

    Attributes:
        seen: the last observation, as JSON; None without one.
        failures: number of verbs that failed in a row.
    """

    seen: str | None = None
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """An observation of one table, or the error that prevented it.

    Attributes:
        unchanged: whether one listing showed that the table is as it was at the last observation.
        seen: the observation for the next one, as JSON; None when the next one cannot use it.
        error: the error's code and message; None when the table was observed.
    """

    table: FleetTable
    observed_ms: int
    unchanged: bool = False
    outlook: Outlook | None = field(default=None, hash=False)
    layout: LayoutFacts | None = None
    score: Score | None = None
    seen: str | None = None
    error: tuple[str, str] | None = None

    @property
    def due(self) -> tuple[str, ...]:
        """The verbs that are due."""
        return () if self.outlook is None else tuple(item.verb for item in self.outlook.decisions if item.due)


def observe_fleet(
    tables: Iterable[FleetTable],
    *,
    before: Mapping[str, Before],
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Iterator[Observation]:
    """Observe tables, in order. A table that fails becomes an observation with the error.

    Args:
        tables: the tables.
        before: what the ledger knows, by URI.
        storage_options: options of the stores of remote tables. Sixteen of these are observed at once.
        clock: the current time.
    """

    def one(table: FleetTable) -> Observation:
        known = before.get(table.uri, Before())
        return observe_table(table, before=known, storage_options=storage_options, clock=clock)

    listed = list(tables)
    if not any(uri_scheme(table.uri) not in (None, "file") for table in listed):
        yield from map(one, listed)
        return
    with ThreadPoolExecutor(_REMOTE_TABLES_AT_ONCE, thread_name_prefix="deltaward-fleet") as pool:
        yield from pool.map(one, listed)


def observe_table(
    table: FleetTable,
    *,
    before: Before,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Observation:
    """Observe one table. Never raises an Exception.

    Requests: one listing when the table has not changed since `before`. Otherwise one listing of the log, a
    request for each commit after the newest checkpoint and for each part of the checkpoint, and for at most
    16 commits since `before` that a newer checkpoint contains.
    """
    try:
        return _observed(table, before, storage_options, clock)
    except DeltaError as error:
        failed = error
    except Exception as error:
        _LOGGER.exception("A table could not be observed.", extra={"uri": table.uri})
        failed = typed_error(error, doing="the observation")
    return Observation(
        table=table, observed_ms=clock.now_ms(), seen=before.seen, error=(failed.code, str(failed))
    )


def _observed(
    table: FleetTable, before: Before, storage_options: Mapping[str, str] | None, clock: Clock
) -> Observation:
    store = open_store(table.uri, storage_options=options_for(table.uri, storage_options), clock=clock)
    rules = table.resolved.rules()
    asked_for = asked(rules)
    document = {} if before.seen is None else json.loads(before.seen)
    last = LastObservation.from_json(document) if document else None
    unchanged = last is not None and last.asked == asked_for and last.holds(store)
    if last is not None and unchanged:
        layout = LayoutFacts.from_json(document[_SECTION])
        outlook = look_again(last, rules, now_ms=clock.now_ms())
        seen = before.seen
    else:
        listing = list_log(store)
        snapshot = Snapshot.of_listing(store, listing, clock=clock)
        outlook = look(
            snapshot,
            rules,
            asked_for=asked_for,
            before=None if last is None else last.health,
            reach=DataAccess(clock=clock),
            listing=listing,
            history_limit=0 if last is None else _HISTORY_LIMIT,
            clock=clock,
        )
        layout = layout_facts(snapshot, listing)
        seen = _seen(outlook, layout)
    policy = table.policy
    return Observation(
        table=table,
        observed_ms=outlook.health.observed_ms,
        unchanged=unchanged,
        outlook=outlook,
        layout=layout,
        score=score(
            outlook.health, layout, rules, failures=before.failures, max_failures=policy.max_failures
        ),
        seen=seen,
    )


def _seen(outlook: Outlook, layout: LayoutFacts) -> str | None:
    if outlook.seen is None:
        return None
    document: dict[str, Any] = {**outlook.seen.to_json(), _SECTION: layout.to_json()}
    return json.dumps(document, separators=(",", ":"))
