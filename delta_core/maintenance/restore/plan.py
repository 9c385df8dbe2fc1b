"""The exact difference between the newest version of a table and an earlier one. Writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import CommitInfo
from delta_core.errors import RestoreError
from delta_core.maintenance.plan_json import plan_header
from delta_core.maintenance.restore.changes import TableChanges, table_changes
from delta_core.maintenance.restore.files import (
    RestoredFile,
    files_with_changed_row_ids,
    missing_files,
    restored_files,
)
from delta_core.maintenance.restore.markdown import plan_markdown
from delta_core.maintenance.restore.row_diff import RowDiff
from delta_core.maintenance.restore.state import restored_metadata
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot

_KEYS_STAY = (
    "These application ids stay in the table. A load with the same idempotency key changes nothing. "
    "To load the rows again, use a new key."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCommit:
    """A commit whose effect would be undone.

    Attributes:
        user: the user name that the commit records, or else the DAG and task of its provenance.
        rows: the commit's operation metrics about rows, by name.
    """

    version: int
    operation: str | None
    timestamp_ms: int | None
    user_metadata: str | None
    user: str | None = None
    rows: Mapping[str, int] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """The commit as a JSON object."""
        return {
            "version": self.version,
            "operation": self.operation,
            "timestamp_ms": self.timestamp_ms,
            "user_metadata": self.user_metadata,
            "user": self.user,
            "rows": dict(self.rows),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTransaction:
    """A `txn` key that a commit after the target version set, and that the restore keeps."""

    app_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The changes that a restore would make.

    Attributes:
        version: the version that would be replaced.
        target_version: the version that would be restored.
        added, removed: files that would be added to and removed from the table.
        missing: files of the target that the store no longer has, or whose deletion vectors it no longer
            has; they are among `added`.
        metadata_changes: True when schema, partitioning or properties would change.
        lost_commits: the undone commits that the log still has, newest first.
        kept_transactions: idempotency keys of the undone commits. They stay, so the same loads do nothing.
        changes: the columns and properties that would be restored, and the table features that stay.
        row_diff: the exact difference in rows from `diff_rows`; None when rows were not compared.
        renumbered: files that stay and whose rows get their earlier row ids again.
    """

    table_id: str
    version: int
    target_version: int
    target_timestamp_ms: int
    added: tuple[RestoredFile, ...]
    removed: tuple[RestoredFile, ...]
    missing: tuple[str, ...]
    metadata_changes: bool
    files_after: int
    bytes_after: int
    lost_commits: tuple[LostCommit, ...]
    kept_transactions: tuple[KeptTransaction, ...] = ()
    changes: TableChanges = field(default_factory=TableChanges)
    row_diff: RowDiff | None = None
    renumbered: tuple[RestoredFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when the table already equals the target version."""
        files = self.added or self.removed or self.renumbered
        return not (files or self.metadata_changes or self.changes.beyond_metadata)

    @property
    def transactions_note(self) -> str | None:
        """A note on the effect of the kept keys on later loads; None without kept keys."""
        return _KEYS_STAY if self.kept_transactions else None

    def predicted(self) -> dict[str, int | None]:
        """The metrics of the plan; a row metric is null when the log records no row count for a file."""
        return {
            "files_added": len(self.added),
            "files_removed": len(self.removed),
            "bytes_added": sum(file.size_bytes for file in self.added),
            "bytes_removed": sum(file.size_bytes for file in self.removed),
            "rows_added": _rows(self.added),
            "rows_removed": _rows(self.removed),
            "files_missing": len(self.missing),
            "commits_undone": self.version - self.target_version,
        }

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {
            **plan_header("restore"),
            "table_id": self.table_id,
            "version": self.version,
            "target_version": self.target_version,
            "target_timestamp_ms": self.target_timestamp_ms,
            "predicted": self.predicted(),
            "metadata_changes": self.metadata_changes,
            "files_after": self.files_after,
            "bytes_after": self.bytes_after,
            "added": [_file_json(file) for file in self.added],
            "removed": [_file_json(file) for file in self.removed],
            "renumbered": [_file_json(file) for file in self.renumbered],
            "missing": list(self.missing),
            "lost_commits": [commit.to_json() for commit in self.lost_commits],
            "kept_transactions": [
                {"app_id": key.app_id, "version": key.version} for key in self.kept_transactions
            ],
            "transactions_note": self.transactions_note,
            "changes": self.changes.to_json(),
            "row_diff": None if self.row_diff is None else self.row_diff.to_json(),
        }

    def to_markdown(self) -> str:
        """The plan as Markdown of bounded length, for the people who approve it. See `plan_markdown`."""
        return plan_markdown(self)


def plan_restore(
    snapshot: Snapshot, *, version: int | None = None, timestamp_ms: int | None = None, run: Run = DEFAULT_RUN
) -> RestorePlan:
    """Compare the snapshot with an earlier (or later) version of its table.

    Files are identified by path and deletion vector. A file whose deletion vectors differ is both removed and
    added. Requests: those of loading the other version, one for each commit in between, and one for each
    data file and deletion vector file that would be added (a single listing for many files).

    Args:
        snapshot: the version to replace, normally the newest.
        version: the version to restore.
        timestamp_ms: the time of the version to restore, in epoch milliseconds, instead of `version`.
        run: the surroundings. Files outside its allowed roots count as missing.

    Raises:
        RestoreError: neither or both of version and timestamp are given.
        VersionNotFoundError: the version is not, or no longer, in the log.
        UnsupportedTableFeatureError: one of the versions cannot be read.
    """
    if (version is None) == (timestamp_ms is None):
        raise RestoreError(
            "A restore needs either a version or a timestamp.", fix="Pass exactly one of the two."
        )
    snapshot.require_readable(operation="restore the table", through_scan=True)
    target = Snapshot.load(snapshot.store, version=version, timestamp_ms=timestamp_ms, clock=run.clock)
    target.require_readable(operation="restore the table", through_scan=True)
    before, after = restored_files(snapshot), restored_files(target)
    added = tuple(file for key, file in after.items() if key not in before)
    return RestorePlan(
        table_id=snapshot.metadata.id,
        version=snapshot.version,
        target_version=target.version,
        target_timestamp_ms=target.timestamp_ms,
        added=added,
        removed=tuple(file for key, file in before.items() if key not in after),
        missing=missing_files(snapshot.store, added, allowed_roots=run.allowed_roots),
        metadata_changes=restored_metadata(snapshot, target) != snapshot.metadata,
        files_after=len(after),
        bytes_after=sum(file.size_bytes for file in after.values()),
        lost_commits=_lost_commits(snapshot, target.version),
        kept_transactions=_kept_transactions(snapshot, target),
        changes=table_changes(snapshot, target),
        renumbered=files_with_changed_row_ids(before, after),
    )


def _rows(files: Iterable[RestoredFile]) -> int | None:
    total = 0
    for file in files:
        if file.rows is None:
            return None
        total += file.rows
    return total


def _lost_commits(snapshot: Snapshot, target_version: int) -> tuple[LostCommit, ...]:
    undone = snapshot.version - target_version
    if undone <= 0:
        return ()
    return tuple(
        LostCommit(
            version=entry.version,
            operation=entry.commit_info.operation,
            timestamp_ms=entry.timestamp_ms,
            user_metadata=entry.commit_info.user_metadata,
            user=_user(entry.commit_info),
            rows=_row_metrics(entry.commit_info.operation_metrics),
        )
        for entry in history(snapshot, limit=undone)
        if entry.version > target_version
    )


def _user(info: CommitInfo) -> str | None:
    if info.user_name:
        return info.user_name
    try:
        provenance = json.loads(info.user_metadata or "{}")
        parts = [provenance.get("dag"), provenance.get("task")]
    except (ValueError, AttributeError):
        return None
    return ".".join(part for part in parts if isinstance(part, str) and part) or None


def _row_metrics(metrics: Mapping[str, Any]) -> dict[str, int]:
    """The metrics that count rows and are not zero; writers record numbers as strings."""
    counts = {}
    for name, value in metrics.items():
        string = str(value)
        if "row" in name.casefold() and string.isascii() and string.isdigit() and int(string):
            counts[name] = int(string)
    return counts


def _kept_transactions(snapshot: Snapshot, target: Snapshot) -> tuple[KeptTransaction, ...]:
    if target.version >= snapshot.version:
        return ()
    before = target.transactions
    return tuple(
        KeptTransaction(app_id=app_id, version=key.version)
        for app_id, key in sorted(snapshot.transactions.items())
        if app_id not in before or before[app_id].version != key.version
    )


def _file_json(file: RestoredFile) -> dict[str, Any]:
    return {"path": file.path, "size_bytes": file.size_bytes, "rows": file.rows}
