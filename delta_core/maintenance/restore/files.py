"""The files of two versions, by what tells logical files apart, and which of them the store still has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors.format import FRAME_BYTES
from delta_core.deletion_vectors.reader import deletion_vector_place
from delta_core.errors import ObjectNotFoundError, PathEscapeError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess, ObjectPlace
from delta_core.storage.listed_files import listed_sizes
from delta_core.storage.log_store import LogStore

FileKey = tuple[str, str | None]
"""Path and deletion vector (PROTOCOL.md, "Action Reconciliation")."""

_COLUMNS = ["path", "size_bytes", "stats", "deletion_vector", "base_row_id", "default_row_commit_version"]
_LIST_ABOVE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredFile:
    """A file that comes back or goes.

    One file may do both, with other deleted rows each time: then its path is the same and its vector another.

    Attributes:
        path: as in the log.
        rows: those that its deletion vector leaves; None when not recorded.
        deletion_vector: which rows of the file are deleted.
        row_ids: its `baseRowId` and `defaultRowCommitVersion` (PROTOCOL.md, "Row Tracking").
    """

    path: str
    size_bytes: int
    rows: int | None
    deletion_vector: DeletionVectorDescriptor | None = None
    row_ids: tuple[int | None, int | None] = (None, None)

    @property
    def key(self) -> FileKey:
        """What tells it from other logical files."""
        return self.path, None if self.deletion_vector is None else self.deletion_vector.unique_id


def file_keys(files: pa.Table) -> list[FileKey]:
    """The identity of each live file."""
    dvs = files["deletion_vector"].to_pylist()
    return [
        (path, None if (dv := _deletion_vector(found)) is None else dv.unique_id)
        for path, found in zip(files["path"].to_pylist(), dvs, strict=True)
    ]


def restored_files(snapshot: Snapshot) -> dict[FileKey, RestoredFile]:
    """The live files of a version, by identity."""
    files = snapshot.files.to_table(_COLUMNS)
    rows = zip(
        files["size_bytes"].to_pylist(),
        files["stats"].to_pylist(),
        map(_deletion_vector, files["deletion_vector"].to_pylist()),
        zip(files["base_row_id"].to_pylist(), files["default_row_commit_version"].to_pylist(), strict=True),
        strict=True,
    )
    return {
        key: RestoredFile(
            path=key[0],
            size_bytes=size,
            rows=_num_rows(stats, dv),
            deletion_vector=dv,
            row_ids=row_ids,
        )
        for key, (size, stats, dv, row_ids) in zip(file_keys(files), rows, strict=True)
    }


def renumbered_files(
    before: Mapping[FileKey, RestoredFile], after: Mapping[FileKey, RestoredFile]
) -> tuple[RestoredFile, ...]:
    """Files of both versions, as in the later one, whose rows have other ids there.

    Row ids change where row tracking was dropped in between. Files that come back would bring ids that rows
    of these files have by now, so all of them go back to the ids of then. A version without any ids asks for
    nothing: nobody relies on those that its files have since.
    """
    other = [file for key, file in after.items() if key in before and before[key].row_ids != file.row_ids]
    return tuple(other) if any(file.row_ids != (None, None) for file in other) else ()


def missing_files(
    store: LogStore, added: Sequence[RestoredFile], *, allowed_roots: Sequence[LogStore] = ()
) -> tuple[str, ...]:
    """Paths of files that are not in the store with the size that the log gives, or whose vector is not.

    Without its vector a file would show rows that are deleted, so it counts as missing itself. One request
    for each file and each file of vectors, or one listing of the table's files where there are many.

    Args:
        store: the table's.
        added: the files.
        allowed_roots: where absolute paths may lead; a file anywhere else counts as missing.
    """
    access = DataAccess(allowed_roots=tuple(allowed_roots))
    sizes = _Sizes(store, list_all=len(added) > _LIST_ABOVE)
    missing = []
    for file in added:
        try:
            there = sizes.of(access.locate(file.path, store=store)) == file.size_bytes
            there = there and _has_deletion_vector(sizes, file.deletion_vector, store=store, access=access)
        except (ObjectNotFoundError, PathEscapeError, ValueError):
            there = False
        if not there:
            missing.append(file.path)
    return tuple(missing)


class _Sizes:
    """Sizes of objects, each one asked for once; None where a listing does not have one."""

    def __init__(self, store: LogStore, *, list_all: bool) -> None:
        self._uri = store.uri
        self._listed: Mapping[str, int] | None = None
        if list_all:
            self._listed = listed_sizes(store)
        self._known: dict[tuple[str, str], int] = {}

    def of(self, place: ObjectPlace) -> int | None:
        """Raises ObjectNotFoundError."""
        if self._listed is not None and place.store.uri == self._uri:
            return self._listed.get(place.path)
        key = (place.store.uri, place.path)
        if key not in self._known:
            self._known[key] = place.store.head(place.path).size_bytes
        return self._known[key]


def _has_deletion_vector(
    sizes: _Sizes, dv: DeletionVectorDescriptor | None, *, store: LogStore, access: DataAccess
) -> bool:
    place = None if dv is None else deletion_vector_place(dv, store=store, access=access)
    if dv is None or place is None:
        return True
    size = sizes.of(place)
    # Several vectors may share the file: it must reach to the end of this one.
    return size is not None and size >= max(dv.offset or 0, 1) + dv.size_in_bytes + FRAME_BYTES


def _deletion_vector(found: Mapping[str, object] | None) -> DeletionVectorDescriptor | None:
    # A checkpoint may hold a vector none of whose fields is there.
    if found is None or found["storage_type"] is None:
        return None
    return DeletionVectorDescriptor(**found)  # type: ignore[arg-type]


def _num_rows(stats: str | None, dv: DeletionVectorDescriptor | None) -> int | None:
    try:
        count = json.loads(stats or "{}").get("numRecords")
    except (ValueError, AttributeError):
        return None
    if not isinstance(count, int):
        return None
    return count - (0 if dv is None else dv.cardinality)
