"""What a vacuum would delete, and why each file. Reads the log and the listing, changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Self

import pyarrow as pa

from delta_core.actions import RemoveFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import MaintenanceError
from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.maintenance.vacuum.guard import require_table_directory
from delta_core.maintenance.vacuum.listing import FileKind, listed_files
from delta_core.maintenance.vacuum.path_identity import is_protected, listed_key
from delta_core.maintenance.vacuum.pinned import PinnedFiles, Pins
from delta_core.maintenance.vacuum.protected import (
    LoggedRemoves,
    change_data_to_keep,
    commits_in_log,
    keys_to_keep,
    removed_keys,
)
from delta_core.maintenance.vacuum.retention import HOUR_MS, Retention, choose_retention
from delta_core.maintenance.vacuum.vectors import named_keys
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import ObjectInfo
from delta_core.table_features.surface import Surface

_REASONS = {
    FileKind.STAGING: "unfinished file of a job that ended, older than the retention",
    FileKind.CHANGE_DATA: "change data of versions from before the retention",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumFile:
    """One file that may go.

    Attributes:
        path: store path: decoded, relative to the table root.
        age_hours: since the store's write time.
        reason: why it may go, for people.
    """

    path: str
    size_bytes: int
    modified_ms: int
    age_hours: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptByPin:
    """Files that would go but for a reader's pin; several pins may keep the same ones."""

    pin: str
    version: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumPlan:
    """What a vacuum would do.

    Attributes:
        version: the newest version that was looked at, after the listing.
        retention: what is kept.
        cutoff_ms: only files written, and removed, before this are in the plan.
        listed_files, listed_bytes: data files that were found, kept ones included.
        num_directories: directories that hold them.
        pins: what stays only because a reader has pinned a version.
        inner_tables: folders that are other Delta tables. Nothing in them is listed or deleted.
    """

    table_id: str
    version: int
    retention: Retention
    cutoff_ms: int
    listed_files: int
    listed_bytes: int
    num_directories: int
    files: tuple[VacuumFile, ...]
    pins: tuple[KeptByPin, ...] = ()
    inner_tables: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to delete."""
        return not self.files

    @property
    def total_bytes(self) -> int:
        """Bytes that would be freed."""
        return sum(file.size_bytes for file in self.files)

    def predicted(self) -> dict[str, int]:
        """The plan in figures."""
        return {
            "files_deleted": len(self.files),
            "bytes_deleted": self.total_bytes,
            "files_kept": self.listed_files - len(self.files),
            "bytes_kept": self.listed_bytes - self.total_bytes,
        }

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        retention = self.retention
        return {
            **plan_header("vacuum"),
            "table_id": self.table_id,
            "version": self.version,
            "retention_ms": retention.retention_ms,
            "margin_ms": retention.margin_ms,
            "required_ms": retention.required_ms,
            "enforced": retention.enforced,
            "specified": retention.specified,
            "cutoff_ms": self.cutoff_ms,
            "listed_files": self.listed_files,
            "listed_bytes": self.listed_bytes,
            "num_directories": self.num_directories,
            "predicted": self.predicted(),
            "files": [
                {
                    "path": file.path,
                    "size_bytes": file.size_bytes,
                    "modified_ms": file.modified_ms,
                    "age_hours": file.age_hours,
                    "reason": file.reason,
                }
                for file in self.files
            ],
            "pins": [asdict(kept) for kept in self.pins],
            "inner_tables": list(self.inner_tables),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: it is not such a plan, or of a newer format.
        """
        check_plan_header(document, "vacuum")
        try:
            return cls(
                table_id=document["table_id"],
                version=document["version"],
                retention=Retention(
                    retention_ms=document["retention_ms"],
                    margin_ms=document["margin_ms"],
                    required_ms=document["required_ms"],
                    enforced=document["enforced"],
                    specified=document["specified"],
                ),
                cutoff_ms=document["cutoff_ms"],
                listed_files=document["listed_files"],
                listed_bytes=document["listed_bytes"],
                num_directories=document["num_directories"],
                files=tuple(VacuumFile(**file) for file in document["files"]),
                pins=tuple(KeptByPin(**kept) for kept in document.get("pins", ())),
                inner_tables=tuple(document.get("inner_tables", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise malformed_plan("vacuum", error) from error


def plan_vacuum(
    snapshot: Snapshot,
    *,
    retention_hours: float | None = None,
    enforce_retention: bool = True,
    force: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> VacuumPlan:
    """List the table's files and pick those that nothing within the retention needs.

    A file is picked when it was written before the cutoff, is not live in the newest version (looked up
    after the listing), was not removed since the cutoff, and is in no version that a reader has pinned. What
    lies in a folder with a log of its own is another table's, and never picked. A
    file of deletion vectors is live, or removed, with each file that has a vector in it. A file of change
    data is picked when it was written before the cutoff, and no commit since names it.
    Whether a pin has ended is judged by this machine's clock here, by the store's when the plan is applied.
    Requests: the listing, one more and the state of each pinned version, the commits that are read for the
    reasons, and those since the cutoff when there is change data from before it.

    Args:
        snapshot: any version of the table.
        retention_hours: None: the table's retention, at least 168 hours.
        enforce_retention, force: both together (False and True) allow a shorter retention.

    Raises:
        RetentionTooShortError: the retention is shorter than what is protected.
        MaintenanceError: the table is the root of a file system, bucket or container; or which file a
            deletion vector is in cannot be told.
        UnsupportedTableFeatureError: a feature, of readers or of writers, is not known.
        LeaseFileError: a reader's pin cannot be read.
        StorageError, InvalidTableError: something could not be read; nothing is planned then.
    """
    snapshot.require_writable(surface=Surface.VACUUM, operation="vacuum the table")
    require_table_directory(snapshot.store.uri)
    retention = choose_retention(
        snapshot.properties, retention_hours=retention_hours, enforce_retention=enforce_retention, force=force
    )
    now_ms = clock.now_ms()
    cutoff_ms = retention.cutoff_ms(now_ms)
    listing = listed_files(snapshot)
    listed = listing.files
    latest = snapshot.refresh()
    latest.require_writable(surface=Surface.VACUUM, operation="vacuum the table")
    keep = keys_to_keep(latest, cutoff_ms=cutoff_ms, removes=LoggedRemoves(cutoff_ms=cutoff_ms))
    pinned = Pins().in_force(latest, store_now_ms=now_ms)
    unpinned = [
        (info, kind)
        for info, kind in listed
        if info.modified_ms < cutoff_ms and not is_protected(info.path, keep)
    ]
    if any(kind is FileKind.CHANGE_DATA for _, kind in unpinned):
        recent = change_data_to_keep(latest, cutoff_ms=cutoff_ms)
        unpinned = [(info, kind) for info, kind in unpinned if not is_protected(info.path, recent)]
    pinned_keys = frozenset[str]().union(*(item.keys for item in pinned))
    candidates = [(info, kind) for info, kind in unpinned if not is_protected(info.path, pinned_keys)]
    reasons = _reasons(latest, [info for info, kind in candidates if kind is FileKind.DATA], retention)
    files = tuple(
        VacuumFile(
            path=info.path,
            size_bytes=info.size_bytes,
            modified_ms=info.modified_ms,
            age_hours=round((now_ms - info.modified_ms) / HOUR_MS, 2),
            reason=_REASONS.get(kind) or reasons[info.path],
        )
        for info, kind in sorted(candidates, key=lambda item: item[0].path)
    )
    return VacuumPlan(
        table_id=latest.metadata.id,
        version=latest.version,
        retention=retention,
        cutoff_ms=cutoff_ms,
        listed_files=len(listed),
        listed_bytes=sum(info.size_bytes for info, _ in listed),
        num_directories=len({info.path.rpartition("/")[0] for info, _ in listed}),
        files=files,
        pins=tuple(_kept_by(item, [info for info, _ in unpinned]) for item in pinned),
        inner_tables=listing.inner_tables,
    )


def _kept_by(pinned: PinnedFiles, infos: Sequence[ObjectInfo]) -> KeptByPin:
    kept = [info.size_bytes for info in infos if is_protected(info.path, pinned.keys)]
    return KeptByPin(pin=pinned.pin.label, version=pinned.pin.version, files=len(kept), bytes=sum(kept))


def _reasons(snapshot: Snapshot, infos: Sequence[ObjectInfo], retention: Retention) -> dict[str, str]:
    """Why each file may go, from the log's removes, the newest first."""
    hours = f"{retention.retention_ms / HOUR_MS:g} h"
    reasons = {info.path: f"not referenced by the table, older than {hours}" for info in infos}
    unexplained = {listed_key(info.path): info.path for info in infos}
    root_uri = snapshot.store.uri
    for key in _let_go(snapshot.tombstones(since_ms=0), root_uri=root_uri):
        if key in unexplained:
            reasons[unexplained[key]] = f"removed from the table, the retention of {hours} passed"
    for commit in reversed(commits_in_log(snapshot)):
        if not unexplained:
            break
        for action in commit_actions(snapshot.store, commit.version):
            if not isinstance(action, RemoveFile):
                continue
            for key in _let_go(action, root_uri=root_uri):
                path = unexplained.pop(key, None)
                if path is not None:
                    reasons[path] = f"removed at version {commit.version}, the retention of {hours} passed"
    return reasons


def _let_go(removes: pa.Table | RemoveFile, *, root_uri: str) -> set[str]:
    """As far as it can be told: a vector that left the table before the retention only explains."""
    with suppress(MaintenanceError):
        if isinstance(removes, RemoveFile):
            return removed_keys(removes, root_uri=root_uri)
        return named_keys(removes, root_uri=root_uri)
    return set()
