"""Selects the files that a vacuum deletes, with a reason for each file. Read-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.log.outer_tables import outer_tables
from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.maintenance.vacuum.file_keys import ListedPaths, Rows
from delta_core.maintenance.vacuum.files import COLUMNS, VacuumFile, VacuumFiles
from delta_core.maintenance.vacuum.guard import require_table_directory
from delta_core.maintenance.vacuum.listing import KINDS, FileKind, listed_files
from delta_core.maintenance.vacuum.logged_files import logged_files
from delta_core.maintenance.vacuum.outer_tables import NeededByOuterTables
from delta_core.maintenance.vacuum.pinned import PinnedFiles, Pins
from delta_core.maintenance.vacuum.protected import LoggedRemoves, change_data_to_keep, keys_to_keep
from delta_core.maintenance.vacuum.reasons import reasons
from delta_core.maintenance.vacuum.retention import HOUR_MS, Retention, choose_retention
from delta_core.numpy_columns import from_numpy, to_numpy
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.name_columns import name_column
from delta_core.table_features.feature import WriterKind

_CHANGE_DATA: Final = KINDS.index(FileKind.CHANGE_DATA)

__all__ = ["KeptByPin", "VacuumFile", "VacuumPlan", "plan_vacuum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptByPin:
    """Files that only a reader's pin protects. Several pins may protect the same files."""

    pin: str
    version: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumPlan:
    """The planned work of a vacuum.

    Attributes:
        version: the newest version, read after the listing.
        retention: the retention from which `cutoff_ms` is computed.
        cutoff_ms: only files that were written and removed before this time are in the plan.
        listed_files, listed_bytes: number and size of the listed data files, including files to keep.
        num_directories: number of directories with listed data files.
        files: the files to delete, sorted by path. Any sequence is converted to `VacuumFiles`.
        pins: the files that are kept only because a reader has pinned a version.
        inner_tables: directories that are other Delta tables. Their files are neither counted nor deleted.
        outer_tables: URIs of tables above this table that need some of its old files. These are not deleted.
    """

    table_id: str
    version: int
    retention: Retention
    cutoff_ms: int
    listed_files: int
    listed_bytes: int
    num_directories: int
    files: Sequence[VacuumFile]
    pins: tuple[KeptByPin, ...] = ()
    inner_tables: tuple[str, ...] = ()
    outer_tables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", VacuumFiles.of(self.files))

    @property
    def columns(self) -> VacuumFiles:
        """The files as columns, for processing many files."""
        return VacuumFiles.of(self.files)

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to delete."""
        return not self.files

    @property
    def total_bytes(self) -> int:
        """Bytes to delete."""
        return self.columns.total_bytes

    def predicted(self) -> dict[str, int]:
        """The expected metrics of the vacuum."""
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
            "files": self.columns.to_json(),
            "pins": [asdict(kept) for kept in self.pins],
            "inner_tables": list(self.inner_tables),
            "outer_tables": list(self.outer_tables),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: the document is not a vacuum plan, or has a newer format.
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
                files=VacuumFiles.from_json(document["files"]),
                pins=tuple(KeptByPin(**kept) for kept in document.get("pins", ())),
                inner_tables=tuple(document.get("inner_tables", ())),
                outer_tables=tuple(document.get("outer_tables", ())),
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise malformed_plan("vacuum", error) from error


def plan_vacuum(
    snapshot: Snapshot,
    *,
    retention_hours: float | None = None,
    enforce_retention: bool = True,
    force: bool = False,
    lite: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> VacuumPlan:
    """List the table's files and select those that no version within the retention needs.

    A data file is selected when it was written before the cutoff, is not live in the newest version (which is
    loaded after the listing), was not removed after the cutoff, and is not in a version that a reader has
    pinned. A file of deletion vectors counts as live or removed like each data file with a deletion vector in
    it. A file of change data is selected when it was written before the cutoff and no later commit refers
    to it. Files in a directory with a log of its own belong to another table and are never selected. Nor are
    files that a table above this table needs, such as a table whose partition directory this table is in.

    The plan compares the end of a pin with this machine's clock; `apply_vacuum` uses the store's clock.

    Requests: the listing of files, the listing of pins, a snapshot load for each pinned version, the commits
    that are read for the reasons, and the commits since the cutoff if there are older files of change data.
    If there are files to delete, a listing for each directory above the table, and the log of each table
    above.

    Args:
        snapshot: any version of the table.
        retention_hours: the table's retention, but at least 168 hours, when None.
        enforce_retention, force: False and True together allow a shorter retention.
        lite: take the removed files from the log instead of a listing; see `logged_files`.

    Raises:
        RetentionTooShortError: the retention is shorter than the required retention.
        MaintenanceError: the table is the root of a file system, bucket or container, or is in a log; or the
            file of a deletion vector, or the files of a table above, cannot be determined.
        UnsupportedTableFeatureError: a reader or writer feature is not supported.
        LeaseFileError: a reader's pin cannot be read.
        StorageError, InvalidTableError: files or metadata could not be read.
    """
    snapshot.require_writable(writer_kind=WriterKind.VACUUM, operation="vacuum the table")
    require_table_directory(snapshot.store.uri)
    retention = choose_retention(
        snapshot.properties, retention_hours=retention_hours, enforce_retention=enforce_retention, force=force
    )
    now_ms = clock.now_ms()
    cutoff_ms = retention.cutoff_ms(now_ms)
    find = logged_files if lite else listed_files
    # Each table of names is large, and is freed as soon as the next one has replaced it.
    listing, files = find(snapshot, cutoff_ms=cutoff_ms)
    latest = snapshot.refresh()
    latest.require_writable(writer_kind=WriterKind.VACUUM, operation="vacuum the table")
    keep = keys_to_keep(latest, cutoff_ms=cutoff_ms, removes=LoggedRemoves(cutoff_ms=cutoff_ms))
    pinned = Pins().in_force(latest, store_now_ms=now_ms)
    files = _without(files, keep.protect(_paths(files)))
    if _CHANGE_DATA in to_numpy(files.column("kind")):
        recent = change_data_to_keep(latest, cutoff_ms=cutoff_ms)
        files = _without(files, recent.protect(_paths(files)))
    by_pins = [item.keys.protect(_paths(files)) for item in pinned]
    kept = tuple(_kept_by(item, files, rows) for item, rows in zip(pinned, by_pins, strict=True))
    if by_pins:
        files = _without(files, np.logical_or.reduce(by_pins))
    needed = _needed_by_outer_tables(latest, files, now_ms=now_ms)
    if needed:
        files = _without(files, np.logical_or.reduce(list(needed.values())))
    files = files.sort_by("path").combine_chunks()
    ages = np.round((now_ms - to_numpy(files.column("modified_ms"))) / HOUR_MS, 2)
    columns = [files.column(name) for name in ("path", "size_bytes", "modified_ms")]
    return VacuumPlan(
        table_id=latest.metadata.id,
        version=latest.version,
        retention=retention,
        cutoff_ms=cutoff_ms,
        listed_files=listing.num_files,
        listed_bytes=listing.total_bytes,
        num_directories=listing.num_directories,
        files=VacuumFiles(
            pa.Table.from_arrays(
                [*columns, from_numpy(ages), reasons(latest, files, retention)], schema=COLUMNS
            )
        ),
        pins=kept,
        inner_tables=listing.inner_tables,
        outer_tables=tuple(needed),
    )


def _needed_by_outer_tables(latest: Snapshot, files: pa.Table, *, now_ms: int) -> Mapping[str, Rows]:
    if not files.num_rows:
        return {}
    needed = NeededByOuterTables(
        outer_tables(latest.store),
        _paths(files),
        to_numpy(files.column("modified_ms")),
        clock=latest.clock,
        now_ms=now_ms,
    )
    return needed.by_table()


def _paths(files: pa.Table) -> ListedPaths:
    chunks = files.column("path").chunks
    # The names are large: one chunk is not copied.
    return ListedPaths(chunks[0] if len(chunks) == 1 else pa.concat_arrays([name_column([]), *chunks]))


def _without(files: pa.Table, rows: Rows) -> pa.Table:
    return files.filter(from_numpy(~rows)) if rows.any() else files


def _kept_by(pinned: PinnedFiles, files: pa.Table, rows: Rows) -> KeptByPin:
    return KeptByPin(
        pin=pinned.pin.label,
        version=pinned.pin.version,
        files=int(np.count_nonzero(rows)),
        bytes=int(to_numpy(files.column("size_bytes"))[rows].sum()),
    )
