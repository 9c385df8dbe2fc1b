"""The files of two versions by their identity, and the check which of them the store still has."""

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
from delta_core.storage.data_access import DataAccess, ObjectLocation
from delta_core.storage.listed_files import listed_sizes
from delta_core.storage.log_store import LogStore

FileKey = tuple[str, str | None]
"""Path and deletion vector (PROTOCOL.md, "Action Reconciliation")."""

_COLUMNS = ["path", "size_bytes", "stats", "deletion_vector", "base_row_id", "default_row_commit_version"]
_LIST_ABOVE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredFile:
    """A file that a restore adds or removes.

    The same path may be both removed and added, with different deletion vectors.

    Attributes:
        path: the path in the log's spelling.
        rows: row count without the rows that the deletion vector deletes; None when not recorded.
        deletion_vector: the deleted rows of the file.
        row_ids: its `baseRowId` and `defaultRowCommitVersion` (PROTOCOL.md, "Row Tracking").
    """

    path: str
    size_bytes: int
    rows: int | None
    deletion_vector: DeletionVectorDescriptor | None = None
    row_ids: tuple[int | None, int | None] = (None, None)

    @property
    def key(self) -> FileKey:
        """The identity of the logical file."""
        return self.path, None if self.deletion_vector is None else self.deletion_vector.unique_id


def file_keys(files: pa.Table) -> list[FileKey]:
    """The identity of each live file."""
    dvs = files["deletion_vector"].to_pylist()
    return [
        (path, None if (dv := _deletion_vector(fields)) is None else dv.unique_id)
        for path, fields in zip(files["path"].to_pylist(), dvs, strict=True)
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


def files_with_changed_row_ids(
    before: Mapping[FileKey, RestoredFile], after: Mapping[FileKey, RestoredFile]
) -> tuple[RestoredFile, ...]:
    """Files that both versions have with different row ids, as in `after`.

    Row ids change when row tracking was dropped in between. Restored files may then have row ids that rows of
    other files have since, so all files get their earlier row ids again. When none of these files has row ids
    in `after`, the result is empty, and the files keep the row ids that they got since.
    """
    changed = [file for key, file in after.items() if key in before and before[key].row_ids != file.row_ids]
    return tuple(changed) if any(file.row_ids != (None, None) for file in changed) else ()


def missing_files(
    store: LogStore, added: Sequence[RestoredFile], *, allowed_roots: Sequence[LogStore] = ()
) -> tuple[str, ...]:
    """Paths of files that the store lacks or has with a different size, or whose deletion vector it lacks.

    Without its deletion vector a file would show deleted rows, so the file counts as missing. Requests: one
    for each file and each deletion vector file, or one listing of the table for many files.

    Args:
        store: the table's store.
        added: the files.
        allowed_roots: the roots that absolute paths may lead to; a file outside them counts as missing.
    """
    access = DataAccess(allowed_roots=tuple(allowed_roots))
    sizes = _Sizes(store, list_all=len(added) > _LIST_ABOVE)
    missing = []
    for file in added:
        try:
            exists = sizes.of(access.locate(file.path, store=store)) == file.size_bytes
            exists = exists and _has_deletion_vector(sizes, file.deletion_vector, store=store, access=access)
        except (ObjectNotFoundError, PathEscapeError, ValueError):
            exists = False
        if not exists:
            missing.append(file.path)
    return tuple(missing)


class _Sizes:
    """Sizes of objects, each requested once; None for an object that the listing does not have."""

    def __init__(self, store: LogStore, *, list_all: bool) -> None:
        self._uri = store.uri
        self._listed: Mapping[str, int] | None = None
        if list_all:
            self._listed = listed_sizes(store)
        self._known: dict[tuple[str, str], int] = {}

    def of(self, place: ObjectLocation) -> int | None:
        """The size of an object. Raises ObjectNotFoundError."""
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
    # Several deletion vectors may share the file. It must contain the end of this one.
    return size is not None and size >= max(dv.offset or 0, 1) + dv.size_in_bytes + FRAME_BYTES


def _deletion_vector(fields: Mapping[str, object] | None) -> DeletionVectorDescriptor | None:
    # A checkpoint may have a deletion vector struct whose fields are all null.
    if fields is None or fields["storage_type"] is None:
        return None
    return DeletionVectorDescriptor(**fields)  # type: ignore[arg-type]


def _num_rows(stats: str | None, dv: DeletionVectorDescriptor | None) -> int | None:
    try:
        count = json.loads(stats or "{}").get("numRecords")
    except (ValueError, AttributeError):
        return None
    if not isinstance(count, int):
        return None
    return count - (0 if dv is None else dv.cardinality)
