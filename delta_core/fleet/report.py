"""The report of a fleet: how it is, what a run did, what it predicted, and what was deferred. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.fleet.facts import BUCKETS
from delta_core.fleet.ledger import Row
from delta_core.maintenance.messages import counted, size

HEALTHY: Final = 80.0
"""The score from which a table counts as healthy."""

_FAILED = ("failed", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """The state of a fleet, and one run.

    Attributes:
        rows: the rows of `fleet`, the worst first.
        runs: the rows of `runs` of the run.
        deferred: what the plan deferred: table, verb and reason.
        run_id: the run; None for the state alone.
        created_ms: the time of the report.
    """

    rows: tuple[Row, ...] = field(hash=False)
    runs: tuple[Row, ...] = field(hash=False)
    deferred: tuple[Mapping[str, str], ...] = field(hash=False)
    run_id: str | None
    created_ms: int

    @property
    def totals(self) -> dict[str, Any]:
        """Numbers over the whole fleet."""
        known = [row for row in self.rows if row["score"] is not None]
        histogram = [0] * BUCKETS
        for row in known:
            for bucket, count in enumerate(row["size_histogram"] or ()):
                histogram[bucket] += count
        return {
            "tables": len(self.rows),
            "healthy": sum(row["score"] >= HEALTHY for row in known),
            "sick": sum(row["score"] < HEALTHY for row in known),
            "unreadable": sum(row["error_code"] is not None for row in self.rows),
            "due": sum(bool(row["due"]) for row in self.rows),
            "circuits_open": sum(bool(row["circuit_open"]) for row in self.rows),
            "unmanaged": sum(row["managed"] is False for row in self.rows),
            "files": sum(row["num_files"] or 0 for row in self.rows),
            "small_files": sum(row["small_files"] or 0 for row in self.rows),
            "bytes": sum(row["total_bytes"] or 0 for row in self.rows),
            "expired_bytes": sum(row["expired_tombstone_bytes"] or 0 for row in self.rows),
            "average_score": round(sum(row["score"] for row in known) / len(known), 1) if known else None,
            "size_histogram": histogram,
        }

    @property
    def verbs(self) -> dict[str, dict[str, Any]]:
        """The run's work by verb: outcomes, predicted and actual."""
        verbs: dict[str, dict[str, Any]] = {}
        for row in self.runs:
            own = verbs.setdefault(
                row["verb"],
                dict.fromkeys(
                    ("succeeded", "failed", "other", "commits", "predicted_files", "actual_files"), 0
                )
                | dict.fromkeys(("predicted_bytes", "actual_bytes", "requests"), 0)
                | {"predicted_cpu_seconds": 0.0, "cpu_seconds": 0.0, "money": 0.0, "gain": 0.0},
            )
            kind = "failed" if row["outcome"] in _FAILED else row["outcome"]
            own[kind if kind in own else "other"] += 1
            own["commits"] += len(row["commits"] or ())
            if row["outcome"] != "succeeded":
                continue
            for name in ("predicted_files", "actual_files", "predicted_bytes", "actual_bytes", "requests"):
                own[name] += row[name] or 0
            for name in ("predicted_cpu_seconds", "cpu_seconds", "money", "gain"):
                own[name] = round(own[name] + (row[name] or 0.0), 6)
        return verbs

    @property
    def failed(self) -> tuple[Row, ...]:
        """The verbs of the run that failed, or whose outcome is unknown."""
        return tuple(row for row in self.runs if row["outcome"] in _FAILED)

    @property
    def needing_attention(self) -> tuple[tuple[str, str], ...]:
        """The tables that need a person, and why: open circuits, failures, tables that cannot be read."""
        reasons: dict[str, str] = {}
        for row in self.rows:
            if row["circuit_open"]:
                reasons[row["name"]] = f"the circuit is open: {row['last_error'] or 'failures'}"
            elif row["error_code"] is not None:
                reasons[row["name"]] = row["error"]
        for row in self.failed:
            reasons.setdefault(row["name"], f"{row['verb']} failed: {row['error']}")
        return tuple(reasons.items())

    def to_json(self, *, worst: int = 100) -> dict[str, Any]:
        """The report as a JSON object, with the facts of the worst tables."""
        columns = ("name", "uri", "version", "score", "reasons", "due", "owner", "circuit_open", "error")
        return {
            "run_id": self.run_id,
            "created_ms": self.created_ms,
            "totals": self.totals,
            "verbs": self.verbs,
            "needing_attention": dict(self.needing_attention),
            "failed": [
                {name: row[name] for name in ("name", "verb", "outcome", "error")} for row in self.failed
            ],
            "deferred": [dict(item) for item in self.deferred],
            "worst": [{name: row[name] for name in columns} for row in self.rows[:worst]],
        }

    def lines(self) -> list[str]:
        """Lines for a terminal, without the tables."""
        totals = self.totals
        lines = [
            f"{len(self.needing_attention)} of {counted(totals['tables'], 'table')} need you; "
            f"{totals['sick']} are sick, {totals['due']} have something due.",
            f"{totals['files']} files, {size(totals['bytes'])}; {totals['small_files']} are small; "
            f"{size(totals['expired_bytes'])} past retention.",
        ]
        for verb, own in self.verbs.items():
            lines.append(
                f"{verb}: {own['succeeded']} succeeded, {own['failed']} failed, {own['other']} not run; "
                f"files {own['actual_files']} (predicted {own['predicted_files']}), "
                f"CPU {own['cpu_seconds']:.2f} s (predicted {own['predicted_cpu_seconds']:.2f} s)"
            )
        lines += [f"{name}: {reason}" for name, reason in self.needing_attention]
        return lines


def fleet_report(
    rows: Iterable[Row],
    runs: Iterable[Row],
    *,
    deferred: Iterable[Mapping[str, str]] = (),
    run_id: str | None = None,
    created_ms: int,
) -> FleetReport:
    """The report of a run.

    Args:
        rows: the rows of `fleet`.
        runs: rows of `runs`; those of other runs are left out.
        deferred: what the plan deferred.
        run_id: the run; None for the state alone.
        created_ms: the time of the report.
    """
    return FleetReport(
        rows=tuple(sorted(rows, key=worst_first)),
        runs=tuple(row for row in runs if run_id is not None and row["run_id"] == run_id),
        deferred=tuple(deferred),
        run_id=run_id,
        created_ms=created_ms,
    )


def worst_first(row: Mapping[str, Any]) -> tuple[bool, float, str]:
    """A sort key: tables that cannot be read first, then by score, then by name."""
    unreadable = row["error_code"] is not None
    return (not unreadable, row["score"] if row["score"] is not None else -1.0, row["name"])
