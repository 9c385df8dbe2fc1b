"""The metrics of a fleet for a monitoring system: names and values, and Prometheus' text format. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from delta_core.fleet.report import FleetReport

PREFIX = "deltaward.fleet"
"""The prefix of every metric."""


def gauges(report: FleetReport) -> dict[str, float]:
    """The metrics of a report by name: of the fleet, and of the report's run."""
    totals = report.totals
    values = {
        name: float(totals[name])
        for name in (
            "tables",
            "healthy",
            "sick",
            "unreadable",
            "due",
            "circuits_open",
            "unmanaged",
            "files",
            "small_files",
            "bytes",
            "expired_bytes",
        )
    }
    if totals["average_score"] is not None:
        values["average_score"] = float(totals["average_score"])
    for verb, own in report.verbs.items():
        for name in (
            "succeeded",
            "failed",
            "other",
            "commits",
            "actual_files",
            "actual_bytes",
            "cpu_seconds",
        ):
            values[f"{verb}.{name}"] = float(own[name])
    values["deferred"] = float(len(report.deferred))
    return {f"{PREFIX}.{name}": value for name, value in values.items()}


def prometheus_text(values: Mapping[str, float]) -> str:
    """Metrics in Prometheus' text format, for the textfile collector."""
    lines = []
    for name, value in sorted(values.items()):
        flat = name.replace(".", "_")
        lines += [f"# TYPE {flat} gauge", f"{flat} {value:.10g}"]
    return "\n".join(lines) + "\n"
