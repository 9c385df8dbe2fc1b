"""Commands that read only the log: `history audit contract`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from delta_core.cli.console import FAILED, print_json, print_line
from delta_core.cli.options import AsJson, OptionFile, Uri, open_table
from delta_core.cli.render import when
from delta_core.cli.tables import print_table
from delta_core.errors import TableNotFoundError
from delta_core.maintenance.audit import audit as audit_log
from delta_core.maintenance.messages import counted
from delta_core.policies.contract import load_contract
from delta_core.policies.drift import table_drift
from delta_core.snapshot.history import HistoryEntry
from delta_core.snapshot.history import history as read_history
from delta_core.snapshot.snapshot import Snapshot


def history(
    table: Uri,
    limit: Annotated[
        int | None, typer.Option(help="Number of commits. All when this is left out.", min=1)
    ] = None,
    options: OptionFile = None,
    as_json: AsJson = False,
) -> None:
    """List the commits, newest first: when, what, by whom."""
    entries = read_history(open_table(table, options), limit=limit)
    if as_json:
        print_json([_history_json(entry) for entry in entries])
        return
    print_table(
        ("version", "when (UTC)", "operation", "parameters", "metrics", "by"),
        [
            (
                entry.version,
                when(entry.timestamp_ms),
                entry.commit_info.operation,
                _pairs(entry.commit_info.operation_parameters),
                _pairs(entry.commit_info.operation_metrics),
                entry.commit_info.user_name or entry.commit_info.engine_info,
            )
            for entry in entries
        ],
    )


def audit(table: Uri, options: OptionFile = None, as_json: AsJson = False) -> None:
    """List the commits with their Airflow runs and flag anomalies. The exit code is 1 when there is one."""
    store = open_table(table, options)
    report = audit_log(store)
    if not report.entries:
        raise TableNotFoundError(f"No Delta table exists at {store.uri}.", fix="Check the path.")
    if as_json:
        print_json(report.to_json())
    else:
        print_table(
            (
                "version",
                "when (UTC)",
                "operation",
                "added",
                "removed",
                "dag",
                "task",
                "run",
                "try",
                "logical date",
            ),
            [
                (
                    entry.version,
                    when(entry.timestamp_ms),
                    entry.operation,
                    entry.files_added,
                    entry.files_removed,
                    *(entry.provenance.get(k) for k in ("dag", "task", "run", "try", "logical_date")),
                )
                for entry in report.entries
            ],
        )
        if report.anomalies:
            print_table(
                ("anomaly", "version", "detail"), [(a.name, a.version, a.detail) for a in report.anomalies]
            )
        else:
            print_line(f"{counted(len(report.entries), 'commit')}, no anomalies")
    if report.anomalies:
        raise typer.Exit(FAILED)


def contract(
    table: Uri,
    contract_file: Annotated[
        Path, typer.Option("--contract", metavar="FILE", help="YAML file with the contract.")
    ],
    options: OptionFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare a table with its contract. The exit code is 1 when a difference is not allowed."""
    expected = load_contract(contract_file)
    snapshot = Snapshot.load(open_table(table, options))
    report = table_drift(expected, snapshot.schema, snapshot.metadata.configuration)
    if as_json:
        print_json(report.to_json())
    elif report.changes:
        print_table(
            ("column", "change", "contract", "table", "allowed", "why"),
            [
                (
                    change.column,
                    change.change.value,
                    change.expected,
                    change.found,
                    "yes" if change.allowed else "no",
                    change.why,
                )
                for change in report.changes
            ],
        )
    else:
        print_line(f"version {snapshot.version} matches the contract")
    if not report.allowed:
        raise typer.Exit(FAILED)


def _history_json(entry: HistoryEntry) -> dict[str, Any]:
    info = entry.commit_info
    return {
        "version": entry.version,
        "timestamp_ms": entry.timestamp_ms,
        "operation": info.operation,
        "operation_parameters": dict(info.operation_parameters),
        "operation_metrics": dict(info.operation_metrics),
        "engine_info": info.engine_info,
        "user_name": info.user_name,
        "user_metadata": info.user_metadata,
        "txn_id": info.txn_id,
        "isolation_level": info.isolation_level,
        "is_blind_append": info.is_blind_append,
    }


def _pairs(values: Any) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())
