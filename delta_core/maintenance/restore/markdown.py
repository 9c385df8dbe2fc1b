"""A restore plan as Markdown, for the people who approve it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_core.maintenance.messages import counted, size

if TYPE_CHECKING:
    from delta_core.maintenance.restore.changes import Change
    from delta_core.maintenance.restore.plan import RestorePlan

_MOST_COMMITS = 20
_MOST_ITEMS = 10
_MOST_SAMPLES = 5
_MOST_NAME = 80
_MOST_SAMPLE = 600


def plan_markdown(plan: RestorePlan) -> str:
    """The plan as Markdown: undone commits and their users; files, bytes and rows; kept features and keys.

    Long lists end with the number of omitted items; `RestorePlan.to_json` has the whole plan. Everything that
    comes from the table (names, operations, values) is formatted as code, so that it cannot imitate the
    document's own sentences.
    """
    sections = [
        _summary(plan),
        _missing(plan),
        _commits(plan),
        _changes("Columns", plan.changes.columns),
        _changes("Properties", plan.changes.properties),
        _kept(plan),
        *_samples(plan),
    ]
    return "\n\n".join(section for section in sections if section)


def _summary(plan: RestorePlan) -> str:
    lines = [
        f"Version **{plan.target_version}** ({_when(plan.target_timestamp_ms)} UTC) would replace "
        f"version **{plan.version}**, as a new version.",
        "",
    ]
    predicted = plan.predicted()
    if plan.is_empty:
        return "\n".join([*lines, "Nothing would change: the table already equals the target version."])
    for word in ("removed", "added"):
        rows = predicted[f"rows_{word}"]
        row_count = "an unknown number of rows" if rows is None else counted(rows, "row")
        files = counted(predicted[f"files_{word}"] or 0, "file")
        lines.append(f"- {files} {word} ({size(predicted[f'bytes_{word}'])}, with {row_count})")
    if (diff := plan.row_diff) is None:
        lines.append("- rows were not compared: removed and added files may have rows in common")
    else:
        exactly = "exactly" if diff.is_exact else "at least"
        lines.append(f"- **{exactly} {counted(diff.rows_lost, 'row')} lost**")
        lines.append(f"- **{exactly} {counted(diff.rows_returned, 'row')} returned**")
        lines.extend(f"- {_plain(note)}" for note in diff.notes)
    lines.append("- the table definition " + ("is restored" if plan.metadata_changes else "does not change"))
    return "\n".join(lines)


def _missing(plan: RestorePlan) -> str:
    if not plan.missing:
        return ""
    head = (
        f"**{counted(len(plan.missing), 'file')} of version {plan.target_version} missing from the store:**"
    )
    return _listed(head, [_code(path) for path in plan.missing])


def _commits(plan: RestorePlan) -> str:
    commits = plan.lost_commits
    if not commits:
        return ""
    lines = [
        f"**Undone, newest first ({counted(plan.version - plan.target_version, 'version')}):**",
        "",
        "| version | when (UTC) | operation | by | rows |",
        "| --- | --- | --- | --- | --- |",
    ]
    for commit in commits[:_MOST_COMMITS]:
        rows = ", ".join(f"{name} {count}" for name, count in commit.rows.items())
        cells = (
            str(commit.version),
            _when(commit.timestamp_ms),
            _code(commit.operation or ""),
            _code(commit.user or ""),
            _code(rows),
        )
        lines.append(f"| {' | '.join(cells)} |")
    table = "\n".join(lines)
    omitted = len(commits) - _MOST_COMMITS
    return f"{table}\n\nand {omitted} more" if omitted > 0 else table


def _changes(title: str, changes: Sequence[Change]) -> str:
    def sentence(change: Change) -> str:
        name = _code(change.name)
        if change.after is None:
            return f"{name} is removed (was {_code(change.before or '')})"
        if change.before is None:
            return f"{name} is added ({_code(change.after)})"
        return f"{name} changes from {_code(change.before)} to {_code(change.after)}"

    return _listed(f"**{title}:**", [sentence(change) for change in changes]) if changes else ""


def _kept(plan: RestorePlan) -> str:
    parts = []
    if plan.changes.kept_features:
        names = ", ".join(_code(name) for name in plan.changes.kept_features)
        parts.append(f"**Table features that stay**, since readers may rely on them: {names}")
    if plan.changes.returning_features:
        names = ", ".join(_code(name) for name in plan.changes.returning_features)
        parts.append(f"**Table features that are added again**, since restored files may need them: {names}")
    if plan.changes.domains:
        names = ", ".join(_code(name) for name in plan.changes.domains)
        parts.append(f"**Metadata domains that are restored**: {names}")
    if plan.kept_transactions:
        keys = [f"{_code(key.app_id)}, version {key.version}" for key in plan.kept_transactions]
        parts.append(f"{_listed('**Idempotency keys that stay:**', keys)}\n\n{plan.transactions_note}")
    return "\n\n".join(parts)


def _samples(plan: RestorePlan) -> Iterator[str]:
    if (diff := plan.row_diff) is None:
        return
    yield _rows("lost", diff.sample_lost, diff.rows_lost)
    yield _rows("returned", diff.sample_returned, diff.rows_returned)


def _rows(what: str, rows: Sequence[Mapping[str, Any]], total: int) -> str:
    if not rows:
        return ""
    shown = rows[:_MOST_SAMPLES]
    # Every line is a JSON object and starts with a brace, so no value can close the code block.
    lines = [_cut(json.dumps(dict(row), ensure_ascii=False), _MOST_SAMPLE) for row in shown]
    return "\n".join([f"**Rows {what}, {len(shown)} of {total}:**", "", "```json", *lines, "```"])


def _listed(head: str, items: Iterable[str]) -> str:
    all_items = list(items)
    lines = [f"- {item}" for item in all_items[:_MOST_ITEMS]]
    if len(all_items) > _MOST_ITEMS:
        lines.append(f"- and {len(all_items) - _MOST_ITEMS} more")
    return "\n".join([head, "", *lines])


def _code(string: str) -> str:
    """A string from the table as inline code; it can end neither the code nor a table cell."""
    clean = _plain(string)
    return f"`{clean}`" if clean else ""


def _plain(string: str) -> str:
    words = " ".join(string.split()).replace("`", "'").replace("|", "/")
    return _cut(words, _MOST_NAME * 3 if " " in words else _MOST_NAME)


def _cut(string: str, most: int) -> str:
    return string if len(string) <= most else f"{string[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def _when(timestamp_ms: int | None) -> str:
    if timestamp_ms is None:
        return "?"
    try:
        return dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
