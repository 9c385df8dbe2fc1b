"""The plan of a run: which verbs run on which tables, in which order, and why others do not. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Self

from delta_core.errors import ConfigurationError
from delta_core.fleet.cost import CostModel, fit
from delta_core.fleet.gain import Work, work_of
from delta_core.fleet.ledger import Row, TableHistory, epoch_ms, histories
from delta_core.fleet.rank import Candidate, Spent, rank, remaining
from delta_core.fleet.registry import FleetTable
from delta_core.fleet.windows import Gate, gate, next_opening_ms, schedule_reached
from delta_core.policies.fleet_model import BudgetPolicy, Mode

FORMAT_VERSION: Final = 1

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
# A checkpoint leaves out the removed files that are past retention, so a vacuum would not be due after it.
_ORDER: Final = {"optimize": 0, "cluster": 1, "vacuum": 2, "checkpoint": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A verb of the plan.

    Attributes:
        kind, params: the job's kind and parameters.
        gain, files, size_bytes, cpu_seconds, money: what was predicted.
        reason: why the verb is due.
        until_ms: the verb must not commit after this time; None without a limit.
        needs_approval: the policy wants a person to approve the verb.
        rules: the table's rules, with which the decision is made again before the verb runs.
    """

    name: str
    uri: str
    table_id: str
    version: int
    verb: str
    kind: str
    params: Mapping[str, Any] = field(hash=False)
    gain: float
    files: int
    size_bytes: int
    cpu_seconds: float
    money: float
    reason: str
    until_ms: int | None
    needs_approval: bool
    rules: Mapping[str, Any] = field(hash=False)
    engine: str = "auto"
    pool: str | None = None
    connection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """A verb that is due and not in the plan, and why."""

    name: str
    uri: str
    verb: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """The plan of one run.

    Attributes:
        plan_id: identifies the plan; of two plans, the later one has the higher id.
        run_id: the run that made the plan.
        entries: in the order in which they should run. The verbs of one table follow each other.
        deferred: what is due and not planned.
    """

    plan_id: int
    run_id: str
    created_ms: int
    entries: tuple[Entry, ...]
    deferred: tuple[Deferred, ...]

    def batch(self, index: int, count: int, *, pool: str | None = None, any_pool: bool = True) -> Self:
        """The part of the plan for one of `count` batches. No table is in two batches.

        Args:
            index: the batch, from 0.
            count: number of batches.
            pool: only tables of this pool count, unless `any_pool`.
            any_pool: all tables count.
        """
        if not 0 <= index < count:
            raise ConfigurationError(f"There is no batch {index} of {count}.", fix="Count batches from 0.")
        entries = [entry for entry in self.entries if any_pool or entry.pool == pool]
        uris = list(dict.fromkeys(entry.uri for entry in entries))
        mine = set(uris[index::count])
        kept = tuple(entry for entry in entries if entry.uri in mine)
        return type(self)(
            plan_id=self.plan_id,
            run_id=self.run_id,
            created_ms=self.created_ms,
            entries=kept,
            deferred=(),
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {**asdict(self), "format_version": FORMAT_VERSION}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            ConfigurationError: the document is not a plan of this format.
        """
        if document.get("format_version") != FORMAT_VERSION:
            raise ConfigurationError(
                "The plan cannot be read.",
                cause=f"Its format is {document.get('format_version')!r}, not {FORMAT_VERSION}.",
                fix="Make a new plan with `deltaward fleet plan --save FILE`.",
            )
        try:
            names = {item.name for item in fields(cls)} - {"entries", "deferred"}
            return cls(
                **{name: document[name] for name in names},
                entries=tuple(Entry(**entry) for entry in document["entries"]),
                deferred=tuple(Deferred(**item) for item in document["deferred"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                "The plan cannot be read.",
                cause=f"The document is malformed: {type(error).__name__}: {error}.",
                fix="Make a new plan with `deltaward fleet plan --save FILE`.",
            ) from error


def make_plan(
    tables: Iterable[FleetTable],
    rows: Mapping[str, Row],
    runs: Iterable[Mapping[str, Any]],
    *,
    plan_id: int,
    run_id: str,
    now_ms: int,
    budget: BudgetPolicy,
    price_per_cpu_hour: float = 0.0,
    ignore_windows: bool = False,
) -> FleetPlan:
    """Decide what runs. Reads nothing.

    Args:
        tables: the tables of the registry.
        rows: their rows of `fleet`, by URI.
        runs: the rows of `runs` of the last weeks, in the order of time.
        plan_id: the plan's id.
        run_id: the run that makes the plan.
        now_ms: the time.
        budget: the limits of the run.
        price_per_cpu_hour: the price of CPU time.
        ignore_windows: plan as if every window were open.
    """
    listed = list(runs)
    history = histories(listed)
    costs = fit(listed, price_per_cpu_hour=price_per_cpu_hour)
    cadence_ms = _cadence_ms(listed, plan_id, now_ms)
    candidates: dict[tuple[str, str], tuple[Candidate, Entry]] = {}
    deferred: list[Deferred] = []
    for table in tables:
        row = rows.get(table.uri)
        if row is None or row.get("decisions") is None or row.get("error_code") is not None:
            continue
        own = history.get(table.uri, TableHistory())
        for verb, decision, work in _due(table, row):
            shut, opening = _refusal(table, row, verb, own, now_ms=now_ms, ignore_windows=ignore_windows)
            seconds = costs.seconds(verb, files=work.files, size_bytes=work.size_bytes)
            shut = shut or _too_long(opening, seconds, now_ms)
            if shut:
                deferred.append(Deferred(name=table.name, uri=table.uri, verb=verb, reason=shut))
                continue
            chance_ms = now_ms + cadence_ms
            if opening.until_ms is not None and table.policy.windows:
                later = next_opening_ms(table.policy, after_ms=now_ms, table_id=row["table_id"] or "")
                chance_ms = chance_ms if later is None else max(chance_ms, later)
            candidate = _candidate(table, row, verb, work, seconds, costs, now_ms, chance_ms)
            entry = _entry(table, row, verb, decision, work, candidate, opening)
            candidates[table.uri, verb] = (candidate, entry)
    allowance = remaining(budget, spent_since(listed, now_ms - _DAY_MS))
    ranking = rank((candidate for candidate, _ in candidates.values()), allowance)
    for item, reason in ranking.deferred:
        entry = candidates[item.uri, item.verb][1]
        deferred.append(Deferred(name=entry.name, uri=item.uri, verb=item.verb, reason=reason))
    chosen = [candidates[item.uri, item.verb][1] for item in ranking.chosen]
    return FleetPlan(
        plan_id=plan_id,
        run_id=run_id,
        created_ms=now_ms,
        entries=_by_table(chosen),
        deferred=tuple(sorted(deferred, key=lambda item: (item.name, _ORDER[item.verb]))),
    )


def spent_since(runs: Iterable[Mapping[str, Any]], since_ms: int) -> Spent:
    """The bytes, CPU seconds and money that the runs since a time have spent."""
    recent = [row for row in runs if (epoch_ms(row["started_at"]) or 0) >= since_ms]
    return Spent(
        size_bytes=sum(row["actual_bytes"] or 0 for row in recent if row["verb"] != "vacuum"),
        cpu_seconds=sum(row["cpu_seconds"] or 0.0 for row in recent),
        money=sum(row["money"] or 0.0 for row in recent),
    )


def _due(table: FleetTable, row: Row) -> list[tuple[str, Mapping[str, Any], Work]]:
    decisions = [item for item in json.loads(row["decisions"]) if item["due"]]
    if any(item["verb"] == "cluster" for item in decisions):
        # Clustering compacts, too.
        decisions = [item for item in decisions if item["verb"] != "optimize"]
    compaction = json.loads(row["compaction"] or "{}")
    reads = table.policy.reads_per_day
    return [
        (item["verb"], item, work_of(item["verb"], row, compaction, reads_per_day=reads))
        for item in decisions
    ]


def _refusal(
    table: FleetTable, row: Row, verb: str, history: TableHistory, *, now_ms: int, ignore_windows: bool
) -> tuple[str, Gate]:
    """Why the verb must not run now, or an empty string; and the table's gate."""
    policy = table.policy
    everything = Gate(is_open=True)
    if history.failures >= policy.max_failures:
        return (
            f"the circuit is open after {history.failures} failures; "
            f"`deltaward fleet circuit {table.name} --close` closes it",
            everything,
        )
    if policy.mode is Mode.SHADOW:
        return "the policy's mode is shadow", everything
    if verb == "vacuum" and policy.vacuum.dry_run:
        return "the policy only plans vacuums (vacuum.dry_run)", everything
    last_ms = history.last_success_ms.get(verb)
    if verb == "vacuum" and last_ms is not None and now_ms - last_ms < _DAY_MS:
        # The log names the removed files until the next checkpoint, also after they were deleted.
        return "a vacuum ran less than 24 h ago", everything
    if last_ms is not None and now_ms - last_ms < policy.cooldown_hours * _HOUR_MS:
        return f"it ran less than {policy.cooldown_hours:g} h ago (cooldown_hours)", everything
    if ignore_windows:
        return "", everything
    if not schedule_reached(policy, now_ms=now_ms, last_ms=last_ms):
        return f"it ran since the last time of the schedule {policy.schedule!r}", everything
    hours = row["commits_by_hour_of_week"] or ()
    opening = gate(policy, now_ms=now_ms, table_id=row["table_id"] or "", hours=hours)
    return opening.reason, opening


def _too_long(opening: Gate, cpu_seconds: float, now_ms: int) -> str:
    if opening.until_ms is None or now_ms + cpu_seconds * 1000 <= opening.until_ms:
        return ""
    left = max(0.0, (opening.until_ms - now_ms) / 1000)
    return f"it would take about {cpu_seconds:.0f} s, and the window closes in {left:.0f} s"


def _cadence_ms(runs: list[Mapping[str, Any]], plan_id: int, now_ms: int) -> int:
    """The time until the next run, judged by the time since the last one; at most a day."""
    started = [epoch_ms(row["started_at"]) or 0 for row in runs if row["plan_id"] not in (None, plan_id)]
    return min(_DAY_MS, max(0, now_ms - max(started))) if started else 0


def _candidate(
    table: FleetTable,
    row: Row,
    verb: str,
    work: Work,
    seconds: float,
    costs: CostModel,
    now_ms: int,
    chance_ms: int,
) -> Candidate:
    since_ms = json.loads(row["due_since"] or "{}").get(verb, now_ms)
    return Candidate(
        uri=table.uri,
        verb=verb,
        gain=work.gain,
        cpu_seconds=seconds,
        size_bytes=0 if verb in ("vacuum", "checkpoint") else work.size_bytes,
        money=costs.money(seconds),
        priority=table.policy.priority,
        age_hours=max(0.0, (now_ms - since_ms) / _HOUR_MS),
        max_age_hours=table.policy.max_age_hours,
        next_chance_hours=(chance_ms - now_ms) / _HOUR_MS,
    )


def _entry(
    table: FleetTable,
    row: Row,
    verb: str,
    decision: Mapping[str, Any],
    work: Work,
    candidate: Candidate,
    opening: Gate,
) -> Entry:
    policy, params = table.policy, dict(decision["params"])
    if verb == "vacuum":
        params["dry_run"] = False
    approval = policy.approval
    return Entry(
        name=table.name,
        uri=table.uri,
        table_id=row["table_id"],
        version=row["version"],
        verb=verb,
        kind="optimize" if verb == "cluster" else verb,
        params=params,
        gain=round(work.gain, 1),
        files=work.files,
        size_bytes=work.size_bytes,
        cpu_seconds=round(candidate.cpu_seconds, 4),
        money=round(candidate.money, 6),
        reason=decision["reason"],
        until_ms=opening.until_ms,
        needs_approval=policy.mode is Mode.PLAN
        or (verb in approval.verbs and work.size_bytes >= approval.min_bytes),
        rules=table.resolved.rules().to_json(),
        engine=policy.engine if verb in ("optimize", "cluster") else "auto",
        pool=policy.pool,
        connection=policy.connection,
    )


def _by_table(entries: list[Entry]) -> tuple[Entry, ...]:
    """The entries with those of one table together, in the place of the table's first, in their order."""
    of_table: dict[str, list[Entry]] = {}
    for entry in entries:
        of_table.setdefault(entry.uri, []).append(entry)
    return tuple(
        entry for group in of_table.values() for entry in sorted(group, key=lambda item: _ORDER[item.verb])
    )
