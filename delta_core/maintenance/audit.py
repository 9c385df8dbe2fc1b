"""The audit of a table: every commit with its provenance, and anomalies. Reads the log, oldest first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.actions import AddFile, CommitInfo, RemoveFile, SetTransaction
from delta_core.log.listing import list_log
from delta_core.snapshot.history import commit_actions
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import canonical_log_path

KNOWN_OPERATIONS: Final = frozenset(
    {
        *("ADD COLUMNS", "ADD CONSTRAINT", "CHANGE COLUMN", "CHANGE COLUMNS", "CLONE", "CLUSTER BY"),
        *("COMPUTE STATS", "CONVERT", "CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT"),
        *("CREATE TABLE", "CREATE TABLE AS SELECT", "DELETE", "DOMAIN METADATA CLEANUP", "DROP COLUMNS"),
        *("DROP CONSTRAINT", "DROP FEATURE", "FSCK", "MERGE", "OPTIMIZE", "OPTIMIZE CHECKPOINT", "PURGE"),
        *("ADD FEATURE", "REMOVE COLUMN MAPPING", "RENAME COLUMN", "REORG", "REPLACE COLUMNS"),
        *("REPLACE TABLE", "REPLACE TABLE AS SELECT", "RESTORE", "ROW TRACKING BACKFILL"),
        *("ROW TRACKING UNBACKFILL", "SET TBLPROPERTIES", "STREAMING UPDATE", "TRUNCATE", "UPDATE"),
        *("UNSET TBLPROPERTIES", "UPDATE SCHEMA", "UPGRADE PROTOCOL", "VACUUM END", "VACUUM START"),
        *("WRITE", "UPDATE COLUMN METADATA", "UPDATE FIELD METADATA", "UPDATE TABLE METADATA"),
    }
)
"""The operation names that delta-spark, delta-rs and deltaward write."""

_PROVENANCE = ("dag", "task", "run", "try", "logical_date", "approver")
_CLOCK_TOLERANCE_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One commit: its operation, its writer, and the orchestrated run that the commit records, if any."""

    version: int
    timestamp_ms: int | None
    operation: str | None
    engine_info: str | None
    user_name: str | None
    files_added: int
    files_removed: int
    provenance: Mapping[str, Any] = field(hash=False)
    transactions: tuple[tuple[str, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        return {
            "version": self.version,
            "timestamp_ms": self.timestamp_ms,
            "operation": self.operation,
            "engine_info": self.engine_info,
            "user_name": self.user_name,
            "files_added": self.files_added,
            "files_removed": self.files_removed,
            "provenance": dict(self.provenance),
            "transactions": [{"app_id": app_id, "version": v} for app_id, v in self.transactions],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """An inconsistency in the log: a stable name, the version that shows it, and a description."""

    name: str
    version: int
    detail: str

    def to_json(self) -> dict[str, Any]:
        """The anomaly as a JSON object."""
        return {"name": self.name, "version": self.version, "detail": self.detail}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Every commit in the log, oldest first, and the anomalies."""

    entries: tuple[AuditEntry, ...]
    anomalies: tuple[Anomaly, ...]

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "commits": [entry.to_json() for entry in self.entries],
            "anomalies": [anomaly.to_json() for anomaly in self.anomalies],
        }


def audit(store: LogStore) -> AuditReport:
    """Read every commit in the log. One listing and one request per commit.

    Anomalies: `version_gap`, `no_provenance`, `unknown_operation`, `transaction_repeated` (the same
    application id and version were committed twice), `transaction_went_back` (the version of an application
    id decreased), `file_added_twice` (a live file was added again), `clock_went_back` (a commit's time is
    more than an hour before the previous commit's time).

    Raises:
        CorruptLogError: a commit is damaged.
    """
    auditor = _Auditor()
    for commit in list_log(store).commits:
        auditor.take(commit.version, commit_actions(store, commit.version))
    return AuditReport(entries=tuple(auditor.entries), anomalies=tuple(auditor.anomalies))


class _Auditor:
    """Checks the commits in order, each against the state that earlier commits left."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []
        self.anomalies: list[Anomaly] = []
        self._live: dict[str, int] = {}
        self._transactions: dict[str, tuple[int, int]] = {}

    def take(self, version: int, actions: Iterable[Any]) -> None:
        """Check the next commit."""
        listed = list(actions)
        info = next((a for a in listed if isinstance(a, CommitInfo)), None)
        entry = AuditEntry(
            version=version,
            timestamp_ms=info.timestamp_ms if info else None,
            operation=info.operation if info else None,
            engine_info=info.engine_info if info else None,
            user_name=info.user_name if info else None,
            files_added=sum(isinstance(a, AddFile) for a in listed),
            files_removed=sum(isinstance(a, RemoveFile) for a in listed),
            provenance=_provenance(info),
            transactions=tuple((a.app_id, a.version) for a in listed if isinstance(a, SetTransaction)),
        )
        self._check_sequence(entry)
        self._check_operation(entry, info)
        self._check_transactions(entry)
        self._check_files(version, listed)
        self.entries.append(entry)

    def _flag(self, name: str, version: int, detail: str) -> None:
        self.anomalies.append(Anomaly(name=name, version=version, detail=detail))

    def _check_sequence(self, entry: AuditEntry) -> None:
        if not self.entries:
            return
        before = self.entries[-1]
        if entry.version != before.version + 1:
            self._flag(
                "version_gap",
                entry.version,
                f"versions {before.version + 1} to {entry.version - 1} are missing",
            )
        if entry.timestamp_ms is not None and before.timestamp_ms is not None:
            back_ms = before.timestamp_ms - entry.timestamp_ms
            if back_ms > _CLOCK_TOLERANCE_MS:
                self._flag(
                    "clock_went_back", entry.version, f"{back_ms // 1000} s before version {before.version}"
                )

    def _check_operation(self, entry: AuditEntry, info: CommitInfo | None) -> None:
        if info is None or info.operation is None:
            self._flag("no_provenance", entry.version, "the commit records no operation")
        elif info.operation.upper() not in KNOWN_OPERATIONS:
            self._flag(
                "unknown_operation", entry.version, f"no known engine writes the operation {info.operation!r}"
            )

    def _check_transactions(self, entry: AuditEntry) -> None:
        for app_id, version in entry.transactions:
            known = self._transactions.get(app_id)
            if known is not None and known[0] == version:
                self._flag(
                    "transaction_repeated",
                    entry.version,
                    f"{app_id!r} version {version} was already committed in version {known[1]}",
                )
            elif known is not None and known[0] > version:
                self._flag(
                    "transaction_went_back", entry.version, f"{app_id!r} went from {known[0]} to {version}"
                )
            self._transactions[app_id] = (version, entry.version)

    def _check_files(self, version: int, actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, RemoveFile) and action.deletion_vector is None:
                self._live.pop(canonical_log_path(action.path), None)
        for action in actions:
            if not isinstance(action, AddFile) or action.deletion_vector is not None:
                continue
            path = canonical_log_path(action.path)
            first = self._live.get(path)
            # A live file may be added again with other statistics, but not as a data change.
            if first is not None and action.data_change:
                self._flag("file_added_twice", version, f"{path!r} has been live since version {first}")
            self._live[path] = version


def _provenance(info: CommitInfo | None) -> dict[str, Any]:
    """The fields of `userMetadata` when it is a JSON object, known fields first."""
    if info is None or not info.user_metadata:
        return {}
    try:
        document = json.loads(info.user_metadata)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return {"text": info.user_metadata}
    ordered = [key for key in _PROVENANCE if key in document]
    return {key: document[key] for key in (*ordered, *(k for k in document if k not in ordered))}
