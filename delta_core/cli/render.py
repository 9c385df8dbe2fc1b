"""Job results as tables for a terminal."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from delta_core.cli.console import print_line
from delta_core.cli.tables import print_facts, print_table
from delta_core.jobs.job_result import JobResult
from delta_core.maintenance.messages import counted, size

_SHOWN_FILES = 50


def render_result(result: JobResult) -> None:
    """Print a job's result in the form of its kind."""
    renderer = _RENDERERS.get(result.kind, _metrics)
    renderer(result)


def when(timestamp_ms: int | None) -> str:
    """A time as ISO 8601 in UTC, without the zone's name; empty for None."""
    if timestamp_ms is None:
        return ""
    try:
        moment = dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _describe(result: JobResult) -> None:
    table = result.output
    features = [*table["reader_features"], *table["writer_features"]]
    print_facts(
        [
            ("uri", table["uri"]),
            ("id", table["id"]),
            ("name", table["name"]),
            ("version", table["version"]),
            ("committed (UTC)", when(table["timestamp_ms"])),
            ("files", f"{table['num_files']} ({size(table['size_bytes'])})"),
            ("partitioned by", ", ".join(table["partition_columns"]) or "-"),
            ("protocol", f"reader {table['min_reader_version']}, writer {table['min_writer_version']}"),
            ("features", ", ".join(sorted(set(features))) or "-"),
            *((key, value) for key, value in sorted(table["properties"].items())),
        ]
    )
    if table["pins"]:
        print_table(
            ("pin", "version", "until (UTC)"),
            [(pin["holder"], pin["version"], when(pin["expires_ms"])) for pin in table["pins"]],
        )
    print_table(
        ("column", "type", "nullable"),
        [(f["name"], _type_name(f["type"]), f["nullable"]) for f in table["schema"]["fields"]],
    )


def _plan(result: JobResult) -> None:
    health, compaction = result.output["health"], result.output["compaction"]
    print_facts(
        [
            ("table", health["uri"]),
            ("version", health["version"]),
            ("files", f"{health['num_files']} ({size(health['total_bytes'])})"),
            ("small files", f"{health['small_files']} ({size(health['small_file_bytes'])})"),
            ("commits since checkpoint", health["log_tail_commits"]),
            ("removed, not yet deleted", f"{health['tombstones']} ({size(health['tombstone_bytes'])})"),
            ("compaction", _compaction(compaction)),
        ]
    )
    print_table(
        ("verb", "due", "urgency", "why"),
        [
            (d["verb"], "yes" if d["due"] else "no", round(float(d["urgency"]), 1), d["reason"])
            for d in result.output["decisions"]
        ],
    )
    if "vacuum" in result.output:
        vacuum = result.output["vacuum"]
        files = counted(vacuum["files_deleted"], "file")
        print_line(f"vacuum would delete {files} ({size(vacuum['bytes_deleted'])})")


def _compaction(metrics: Mapping[str, Any]) -> str:
    if not metrics["files_removed"]:
        return "nothing to compact"
    return f"would turn {counted(metrics['files_removed'], 'file')} into {metrics['files_added']}"


def _optimize(result: JobResult) -> None:
    plan = result.predicted
    if not plan.get("files_removed"):
        print_line("nothing to do: no two small files share a partition")
        return
    metrics: Mapping[str, Any] = result.actual or plan
    verb = "rewrote" if result.actual else "would rewrite"
    text = f"{verb} {counted(metrics['files_removed'], 'file')} ({size(metrics['bytes_removed'])})"
    text += f" as {metrics['files_added']}"
    if result.actual:
        text += f" ({size(metrics['bytes_added'])}), version {result.version_to}"
    print_line(text)


def _vacuum(result: JobResult) -> None:
    files = result.output["plan"]["files"]
    if result.actual:
        actual = result.actual
        print_line(f"deleted {counted(actual['files_deleted'], 'file')} ({size(actual['bytes_deleted'])})")
        return
    if not files:
        print_line("nothing to delete")
        return
    print_table(
        ("path", "size", "age (h)", "why"),
        [(f["path"], size(f["size_bytes"]), f["age_hours"], f["reason"]) for f in files[:_SHOWN_FILES]],
    )
    if len(files) > _SHOWN_FILES:
        print_line(f"and {len(files) - _SHOWN_FILES} more; --json lists all")
    plan = result.predicted
    print_line(
        f"would delete {plan['files_deleted']} of {plan['files_deleted'] + plan['files_kept']} files "
        f"({size(plan['bytes_deleted'])}); pass --apply to delete them"
    )


def _repair(result: JobResult) -> None:
    files = result.output["plan"]["missing"]
    if result.actual:
        missing = counted(result.actual["files_removed"], "missing file")
        print_line(f"removed {missing} ({size(result.actual['bytes_removed'])})")
        return
    if not files:
        print_line("no file is missing")
        return
    print_table(
        ("missing", "size", "rows"),
        [
            (f["path"], size(f["size_bytes"]), "?" if f["rows"] is None else f["rows"])
            for f in files[:_SHOWN_FILES]
        ],
    )
    if len(files) > _SHOWN_FILES:
        print_line(f"and {len(files) - _SHOWN_FILES} more; --json lists all")
    print_line(
        f"would remove {counted(len(files), 'missing file')} ({size(result.predicted['bytes_removed'])}); "
        "pass --apply to remove their rows from the table"
    )


def _restore(result: JobResult) -> None:
    plan, metrics = result.output["plan"], result.predicted
    print_facts(
        [
            ("from version", plan["version"]),
            ("to version", f"{plan['target_version']} ({when(plan['target_timestamp_ms'])} UTC)"),
            ("files added", _moved(metrics, "added")),
            ("files removed", _moved(metrics, "removed")),
            ("files missing", metrics["files_missing"]),
            *_row_metrics(plan["row_diff"]),
            ("schema or properties", "restored" if plan["metadata_changes"] else "unchanged"),
        ]
    )
    _print_definition(plan["changes"])
    if plan["row_diff"] is not None:
        _sample_rows(plan["row_diff"])
    if plan["lost_commits"]:
        print_table(
            ("undone", "when (UTC)", "operation"),
            [(c["version"], when(c["timestamp_ms"]), c["operation"]) for c in plan["lost_commits"]],
        )
    if plan["kept_transactions"]:
        print_table(
            ("application id", "stays at"), [(k["app_id"], k["version"]) for k in plan["kept_transactions"]]
        )
        print_line(plan["transactions_note"])
    if result.commits:
        print_line(f"restored as version {result.version_to}")
    elif result.actual:
        print_line("nothing to do: the table already equals that version")
    else:
        print_line("nothing was changed; pass --apply to restore")


def _row_metrics(diff: Mapping[str, Any] | None) -> list[tuple[str, object]]:
    if diff is None:
        return []
    bound = "" if diff["exact"] else "at least "
    return [
        ("rows lost", f"{bound}{diff['rows_lost']}"),
        ("rows returned", f"{bound}{diff['rows_returned']}"),
    ]


def _print_definition(changes: Mapping[str, Any]) -> None:
    changed = [("column", change) for change in changes["columns"]]
    changed += [("property", change) for change in changes["properties"]]
    if changed:
        print_table(
            ("what", "name", "from", "to"),
            [(what, c["name"], c["from"] or "-", c["to"] or "-") for what, c in changed],
        )
    if changes["kept_features"]:
        print_line(f"table features that stay: {', '.join(changes['kept_features'])}")


def _sample_rows(diff: Mapping[str, Any]) -> None:
    for note in diff["notes"]:
        print_line(note)
    for what in ("lost", "returned"):
        if rows := diff[f"sample_{what}"]:
            print_line(f"rows {what}, {len(rows)} of {diff[f'rows_{what}']}:")
            for row in rows:
                print_line(f"  {json.dumps(row, ensure_ascii=False)}")


def _checkpoint(result: JobResult) -> None:
    if result.actual.get("written"):
        files = counted(result.actual["num_add_files"], "file")
        text = f"wrote a checkpoint of version {result.actual['version']}"
        print_line(f"{text} ({size(result.actual['size_bytes'])}): it describes {files}")
    elif "version" in result.predicted:
        print_line(f"would write a checkpoint of version {result.predicted['version']}")
    else:
        print_line(str(result.output.get("reason", "nothing to do")))


def _cleanup(result: JobResult) -> None:
    verb = "deleted" if result.actual else "would delete"
    print_line(f"{verb} {counted(result.predicted['files_deleted'], 'log file')}")


def _verify(result: JobResult) -> None:
    print_table(
        ("check", "passed", "detail"),
        [(c["name"], "yes" if c["passed"] else "NO", c["detail"]) for c in result.output["report"]["checks"]],
    )


def _metrics(result: JobResult) -> None:
    print_facts([("status", result.status.value), *result.predicted.items(), *result.actual.items()])


def _moved(metrics: Mapping[str, Any], what: str) -> str:
    rows = metrics[f"rows_{what}"]
    amount = f"{metrics[f'files_{what}']} ({size(metrics[f'bytes_{what}'])}"
    return amount + (")" if rows is None else f", {rows} rows)")


def _type_name(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    name = kind.get("type", "?")
    if name == "array":
        return f"array<{_type_name(kind['elementType'])}>"
    if name == "map":
        return f"map<{_type_name(kind['keyType'])},{_type_name(kind['valueType'])}>"
    return "struct<" + ",".join(f"{f['name']}:{_type_name(f['type'])}" for f in kind.get("fields", ())) + ">"


_RENDERERS: Final[Mapping[str, Callable[[JobResult], None]]] = {
    "describe": _describe,
    "plan": _plan,
    "optimize": _optimize,
    "vacuum": _vacuum,
    "restore": _restore,
    "repair": _repair,
    "checkpoint": _checkpoint,
    "cleanup_metadata": _cleanup,
    "verify": _verify,
}
