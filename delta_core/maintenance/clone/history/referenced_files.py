"""The data, change data and deletion vector files that the kept versions refer to, removed ones included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import Metadata, Protocol
from delta_core.actions.json_codec import metadata_from_json, protocol_from_json
from delta_core.log.commit_reader import read_commits
from delta_core.maintenance.clone.history.kept_log import KeptLog
from delta_core.maintenance.clone.history.path_mapping import FILE_ACTIONS, MappedFile, PathMapping
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import ObjectLocation
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.support import require_write_support

_COMMITS_AT_ONCE = 64
_COLUMNS = ["path", "size_bytes", "deletion_vector"]
_V2_CHECKPOINTS = "v2Checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedObject:
    """The place of an object, and the size that the log records; None when no action records it."""

    place: ObjectLocation
    size_bytes: int | None


@dataclass(slots=True, kw_only=True)
class ReferencedFiles:
    """Collects the objects that the kept versions refer to, and checks that all versions can be cloned.

    Attributes:
        path_mapping: maps paths of the source to paths of the clone.
        objects: the objects, by their paths in the clone's store.
        protocol, metadata: the table definition of the version that was read last.
        may_have_sidecars: whether a checkpoint with a classic file name may have sidecars.
    """

    path_mapping: PathMapping
    objects: dict[str, ReferencedObject] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    may_have_sidecars: bool = False

    def begin(self, first: Snapshot, *, with_files: bool) -> None:
        """Read the version that the log starts with; `with_files` includes its live files and tombstones.

        Raises:
            UnsupportedTableFeatureError: the version requires a feature that cannot be cloned.
            CorruptLogError: the version cannot be read.
            PathEscapeError: the version refers to a file outside the source and the allowed roots.
        """
        self.protocol, self.metadata = first.protocol, first.metadata
        self._require_support()
        if not with_files:
            return
        first.require_readable(operation="clone the table with its history", through_scan=True)
        for batch in first.files.batches(_COLUMNS):
            self._rows(batch.to_pylist())
        self._rows(first.tombstones(since_ms=0).select(_COLUMNS).to_pylist())

    def follow(self, store: LogStore, kept: KeptLog) -> None:
        """Read the commits. One request for each, several at a time.

        Raises:
            UnsupportedTableFeatureError: a version requires a feature that cannot be cloned.
            CorruptLogError: a commit is damaged.
            ObjectNotFoundError: a commit is missing.
            PathEscapeError: a commit refers to a file outside the source and the allowed roots.
        """
        for start in range(0, len(kept.commits), _COMMITS_AT_ONCE):
            for commit in read_commits(store, kept.commits[start : start + _COMMITS_AT_ONCE]):
                is_redefined = False
                for _, kind, fields in commit.actions():
                    if kind == "protocol":
                        self.protocol, is_redefined = protocol_from_json(fields), True
                    elif kind == "metaData":
                        self.metadata, is_redefined = metadata_from_json(fields), True
                    elif kind in FILE_ACTIONS:
                        self._add(kind, fields)
                if is_redefined:
                    self._require_support()

    def live_paths(self, snapshot: Snapshot) -> set[str]:
        """The paths, in the clone, of the objects that a read of the version needs."""
        paths: set[str] = set()
        for batch in snapshot.files.batches(["path", "deletion_vector"]):
            for row in batch.to_pylist():
                paths.update(path for path, _ in self._objects_of("add", _as_json(row)))
        return paths

    def _rows(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._add("add", _as_json(row))

    def _add(self, kind: str, fields: Mapping[str, Any]) -> None:
        for path, item in self._objects_of(kind, fields):
            known = self.objects.get(path)
            if known is None or known.size_bytes is None:
                self.objects[path] = item

    def _objects_of(self, kind: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, ReferencedObject]]:
        file = self.path_mapping.of_file(fields["path"], kind=kind)
        yield _object(file, fields.get("size"))
        dv = fields.get("deletionVector")
        dv_file = None if dv is None else self.path_mapping.of_deletion_vector(dv)
        if dv_file is not None:
            # The descriptor has the size of one deletion vector; the file may hold several.
            yield _object(dv_file, None)

    def _require_support(self) -> None:
        if self.protocol is None or self.metadata is None:
            return
        self.may_have_sidecars |= _V2_CHECKPOINTS in (self.protocol.reader_features or ())
        require_write_support(
            self.protocol,
            self.metadata,
            writer_kind=WriterKind.RESTORE,
            has_v2_checkpoint=False,
            operation="clone the table with its history",
        )


def _object(file: MappedFile, size_bytes: int | None) -> tuple[str, ReferencedObject]:
    return file.path, ReferencedObject(place=file.place, size_bytes=size_bytes)


def _as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"path": row["path"], "size": row.get("size_bytes")}
    dv = row["deletion_vector"]
    if dv is not None and dv["storage_type"] is not None:
        fields["deletionVector"] = {
            "storageType": dv["storage_type"],
            "pathOrInlineDv": dv["path_or_inline_dv"],
        }
    return fields
