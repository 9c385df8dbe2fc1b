"""The search for live files that the store no longer has. Changes nothing; reads no data file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from delta_core.actions import AddFile
from delta_core.deletion_vectors.reader import deletion_vector_place
from delta_core.errors import PathEscapeError
from delta_core.maintenance.fsck.file_lookup import Absence, absences, place_of
from delta_core.maintenance.plan_json import check_plan_header, malformed_plan, plan_header
from delta_core.maintenance.vacuum.path_identity import listed_key, protected_keys
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess, ObjectLocation
from delta_core.storage.listed_files import listed_sizes
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import encode_data_path
from delta_core.transaction.file_actions import add_actions, num_records

PartitionValues = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFile:
    """A live file that the store no longer has.

    Attributes:
        path: the path in the log's spelling.
        rows: row count without the rows that a deletion vector deletes; None when the log records no count.
        partition_values: strings as in the log, by the columns' names.
    """

    path: str
    size_bytes: int
    rows: int | None
    partition_values: PartitionValues = ()

    def to_json(self) -> dict[str, Any]:
        """The file as a JSON object."""
        return {
            "path": self.path,
            "size_bytes": self.size_bytes,
            "rows": self.rows,
            "partition_values": dict(self.partition_values),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableFile:
    """A live file that cannot be read, and that stays in the table.

    Its rows exist or may exist: only its deletion vector file is missing, or its location must not be read.

    Attributes:
        path: the data file's path in the log's spelling.
        deletion_vector: the path of the deletion vector file, when that file cannot be read; relative to the
            table's root, or in the log's spelling when it is outside the root.
        reason: an explanation for users.
    """

    path: str
    deletion_vector: str | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The file as a JSON object."""
        return {"path": self.path, "deletion_vector": self.deletion_vector, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckPlan:
    """The changes that a repair would make.

    Attributes:
        version: the version that was checked.
        considered_files: number of its live files.
        missing: files that would be removed from the table.
        unreadable: files that exist or may exist, but cannot be read; they would stay in the table.
    """

    table_id: str
    version: int
    considered_files: int
    missing: tuple[MissingFile, ...]
    unreadable: tuple[UnreadableFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when the repair would remove nothing."""
        return not self.missing

    @property
    def missing_bytes(self) -> int:
        """Total size of the missing files, as the log records it."""
        return sum(file.size_bytes for file in self.missing)

    @property
    def missing_rows(self) -> int | None:
        """Number of lost rows; None when the log records no row count for a file."""
        counts = [file.rows for file in self.missing]
        return None if None in counts else sum(count for count in counts if count is not None)

    def predicted(self) -> dict[str, int | None]:
        """The expected metrics of the repair."""
        return {
            "files_removed": len(self.missing),
            "bytes_removed": self.missing_bytes,
            "rows_removed": self.missing_rows,
            "files_unreadable": len(self.unreadable),
        }

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {
            **plan_header("repair"),
            "table_id": self.table_id,
            "version": self.version,
            "considered_files": self.considered_files,
            "predicted": self.predicted(),
            "missing": [file.to_json() for file in self.missing],
            "unreadable": [file.to_json() for file in self.unreadable],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The plan that `to_json` wrote.

        Raises:
            MaintenanceError: the document is not such a plan, or has a newer format.
        """
        check_plan_header(document, "repair")
        try:
            return cls(
                table_id=document["table_id"],
                version=document["version"],
                considered_files=document["considered_files"],
                missing=tuple(
                    MissingFile(**{**file, "partition_values": tuple(file["partition_values"].items())})
                    for file in document["missing"]
                ),
                unreadable=tuple(UnreadableFile(**file) for file in document["unreadable"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise malformed_plan("repair", error) from error


def plan_fsck(snapshot: Snapshot, *, run: Run = DEFAULT_RUN) -> FsckPlan:
    """Find live files that the store no longer has, and live files whose deletion vector file is missing.

    Requests: one listing of the table, one for each file that the listing does not show, and one for each
    file outside the table, as in a shallow clone. `absences` defines when a file counts as missing.

    Args:
        snapshot: the version to check, normally the newest.
        run: the surroundings. A file outside its allowed roots is not looked up, and is reported as
            unreadable.

    Raises:
        UnsupportedTableFeatureError: the table cannot be read.
        StorageError: the store could not be listed, or failed to report whether it has a file.
    """
    snapshot.require_readable(operation="look for missing files", through_scan=True)
    store, access = snapshot.store, run.access
    files = snapshot.files.to_table()
    listed = set(listed_sizes(store))
    paths = files["path"].to_pylist()
    # Nearly all files exist, with the spelling that all writers use.
    shown = {encode_data_path(path) for path in listed}
    absent = absences(
        store,
        {path: place_of(path, store, access) for path in paths if path not in shown},
        listed=listed,
        access=access,
    )
    absent |= _spelled_otherwise([path for path, absence in absent.items() if absence.is_sure], store, listed)
    dvs = _deletion_vectors(files, absent, store, access)
    absent_dvs = absences(
        store,
        dict(dvs.values()),
        listed=listed,
        access=access,
    )
    is_missing = [path in absent and absent[path].is_sure for path in paths]
    missing_files = files.filter(pa.array(is_missing, pa.bool_()))
    partitions = {
        name: snapshot.column_mapping.physical_path((name,), snapshot.schema)[0]
        for name in snapshot.partition_columns
    }
    unreadable = [
        *(
            UnreadableFile(path=path, deletion_vector=None, reason=absence.reason)
            for path, absence in absent.items()
            if not absence.is_sure
        ),
        *(
            UnreadableFile(path=path, deletion_vector=name, reason=absent_dvs[name].reason)
            for path, (name, _) in dvs.items()
            if name in absent_dvs
        ),
    ]
    return FsckPlan(
        table_id=snapshot.metadata.id,
        version=snapshot.version,
        considered_files=len(paths),
        missing=tuple(_missing(add, partitions) for add in add_actions(missing_files, data_change=True)),
        unreadable=tuple(unreadable),
    )


def _spelled_otherwise(missing: Sequence[str], store: LogStore, listed: Set[str]) -> dict[str, Absence]:
    """The files that the store may have under a name that a writer escaped twice, or not at all.

    Readers do not find these files, but their rows are not lost.
    """
    absent = {}
    keys = {path: protected_keys([path], root_uri=store.uri) for path in missing}
    names = {listed_key(path): path for path in listed} if keys else {}
    for path, spellings in keys.items():
        name = next((names[key] for key in sorted(spellings) if key in names), None)
        if name is not None:
            absent[path] = Absence(
                is_sure=False, reason=f"the store has the file under another spelling: {name!r}"
            )
    return absent


def _missing(add: AddFile, partitions: Mapping[str, str]) -> MissingFile:
    return MissingFile(
        path=add.path,
        size_bytes=add.size_bytes,
        rows=num_records(add),
        partition_values=tuple(
            (name, add.partition_values.get(physical)) for name, physical in partitions.items()
        ),
    )


def _deletion_vectors(
    files: pa.Table, absent: Mapping[str, Absence], store: LogStore, access: DataAccess
) -> dict[str, tuple[str, ObjectLocation | Absence]]:
    """The deletion vector files of the data files that exist, by the data file's path."""
    dvs: dict[str, tuple[str, ObjectLocation | Absence]] = {}
    for add in add_actions(files.filter(files["deletion_vector"].is_valid()), data_change=True):
        if add.path in absent or add.deletion_vector is None:
            continue
        name = add.deletion_vector.path_or_inline_dv
        try:
            place = deletion_vector_place(add.deletion_vector, store=store, access=access)
        except PathEscapeError:
            reason = "its deletion vector is outside the table and the allowed roots"
            dvs[add.path] = (name, Absence(is_sure=False, reason=reason))
        except ValueError as error:
            dvs[add.path] = (
                name,
                Absence(is_sure=False, reason=f"its deletion vector is invalid: {error}"),
            )
        else:
            if place is not None:
                in_table = place.store.uri == store.uri
                dvs[add.path] = (place.path if in_table else name, place)
    return dvs
