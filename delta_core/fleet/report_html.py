"""The report as one HTML file, without scripts and without anything to load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

from delta_core.errors import escape_control_characters
from delta_core.fleet.facts import bucket_limits
from delta_core.fleet.ledger import Row, instant
from delta_core.fleet.report import HEALTHY, FleetReport
from delta_core.maintenance.messages import size

_DETAILED: Final = 100
_MOST_DEFERRED: Final = 1000

_STYLE: Final = """
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
h1,h2{line-height:1.2}table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{padding:.3rem .6rem;border-bottom:1px solid #8886;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;padding:0;list-style:none}
.tiles b{display:block;font-size:1.5rem}
.tiles li{border:1px solid #8886;border-radius:.5rem;padding:.5rem 1rem}
.bad{color:#c0282d;font-weight:600}.bar{display:inline-block;height:.8rem;background:#3b7dd8}
td,summary{overflow-wrap:anywhere}small{opacity:.75}
"""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def report_html(report: FleetReport) -> str:
    """The report as an HTML document. Details of the 100 worst tables, and a line for each of the others."""
    created = instant(report.created_ms).strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>",
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        "<meta name='viewport' content='width=device-width'><title>Fleet report</title>",
        f"<style>{_STYLE}</style></head><body><main>",
        f"<h1>Fleet report</h1><p>{_text(created)}",
        f", run <code>{_text(report.run_id)}</code></p>" if report.run_id else "</p>",
        _tiles(report),
        _attention(report),
        _verbs(report),
        _histogram(report),
        _details(report.rows[:_DETAILED]),
        _all_tables(report.rows),
        _deferred(report),
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _tiles(report: FleetReport) -> str:
    totals = report.totals
    shown = (
        ("tables", totals["tables"]),
        ("need you", len(report.needing_attention)),
        ("sick", totals["sick"]),
        ("with something due", totals["due"]),
        ("circuits open", totals["circuits_open"]),
        ("unmanaged", totals["unmanaged"]),
        ("average score", "-" if totals["average_score"] is None else totals["average_score"]),
        ("files", totals["files"]),
        ("small files", totals["small_files"]),
        ("stored", size(totals["bytes"])),
        ("past retention", size(totals["expired_bytes"])),
    )
    items = "".join(f"<li><b>{_text(value)}</b>{_text(name)}</li>" for name, value in shown)
    return f"<ul class='tiles'>{items}</ul>"


def _attention(report: FleetReport) -> str:
    rows = [(name, reason) for name, reason in report.needing_attention]
    return _section("Need you", ("table", "why"), rows) if rows else "<h2>Need you</h2><p>No table.</p>"


def _verbs(report: FleetReport) -> str:
    if not report.verbs:
        return ""
    heads = ("verb", "succeeded", "failed", "not run", "files", "predicted", "bytes", "predicted")
    rows = [
        (
            verb,
            own["succeeded"],
            own["failed"],
            own["other"],
            own["actual_files"],
            own["predicted_files"],
            size(own["actual_bytes"]),
            size(own["predicted_bytes"]),
            round(own["cpu_seconds"], 2),
            round(own["predicted_cpu_seconds"], 2),
            round(own["money"], 4),
        )
        for verb, own in report.verbs.items()
    ]
    return _section("This run", (*heads, "CPU s", "predicted", "money"), rows)


def _histogram(report: FleetReport) -> str:
    counts = report.totals["size_histogram"]
    most = max(counts, default=0)
    if not most:
        return ""
    names = [f"below {size(limit)}" for limit in bucket_limits()] + ["larger"]
    lines = "".join(
        f"<tr><td>{name}</td><td class='n'>{count}</td>"
        f"<td><span class='bar' style='width:{count / most * 30:.2f}rem'></span></td></tr>"
        for name, count in zip(names, counts, strict=True)
    )
    return f"<h2>File sizes</h2><table><tr><th>size<th class='n'>files<th></tr>{lines}</table>"


def _details(rows: Sequence[Row]) -> str:
    parts = ["<h2>The worst tables</h2>"]
    for row in rows:
        if (
            row["error_code"] is None
            and row["score"] is not None
            and row["score"] >= HEALTHY
            and not row["due"]
        ):
            continue
        reasons = [row["error"]] if row["error"] else row["reasons"] or []
        items = "".join(f"<li>{_text(reason)}</li>" for reason in reasons)
        state = " <span class='bad'>circuit open</span>" if row["circuit_open"] else ""
        facts = (
            f"{row['uri']}; version {row['version']}; {row['num_files'] or 0} files, "
            f"{size(row['total_bytes'] or 0)}; due: {', '.join(row['due'] or ()) or 'nothing'}; "
            f"owner: {row['owner'] or '-'}; observed {row['observed_at']:%Y-%m-%d %H:%M} UTC"
        )
        score = "?" if row["score"] is None else row["score"]
        parts.append(
            f"<details><summary><b>{_text(score)}</b> {_text(row['name'])}{state}</summary>"
            f"<p><small>{_text(facts)}</small></p><ul>{items}</ul></details>"
        )
    return "".join(parts) if len(parts) > 1 else ""


def _all_tables(rows: Sequence[Row]) -> str:
    listed = [
        (
            row["name"],
            "?" if row["score"] is None else row["score"],
            row["version"],
            row["num_files"],
            size(row["total_bytes"] or 0),
            ", ".join(row["due"] or ()),
        )
        for row in rows
    ]
    return _section("All tables", ("table", "score", "version", "files", "stored", "due"), listed)


def _deferred(report: FleetReport) -> str:
    rows = [(item["name"], item["verb"], item["reason"]) for item in report.deferred[:_MOST_DEFERRED]]
    return _section("Deferred", ("table", "verb", "why"), rows) if rows else ""


def _section(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    listed = list(rows)
    numeric = [
        bool(listed) and all(isinstance(row[column], int | float | None) for row in listed)
        for column in range(len(heads))
    ]
    marks = [" class='n'" if flag else "" for flag in numeric]
    head = "".join(f"<th{mark}>{_text(name)}" for mark, name in zip(marks, heads, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{mark}>{_text(cell)}" for mark, cell in zip(marks, row, strict=True))
        + "</tr>\n"
        for row in listed
    )
    return f"<h2>{_text(title)}</h2><table><tr>{head}</tr>\n{body}</table>"


def _text(value: object) -> str:
    return "" if value is None else escape(escape_control_characters(str(value)))
