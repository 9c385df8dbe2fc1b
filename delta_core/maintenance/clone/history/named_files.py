"""Every object that the kept versions name: data files, change data, deletion vectors; removed ones, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import Metadata, Protocol
from delta_core.actions.json_codec import metadata_from_json, protocol_from_json
from delta_core.log.commit_reader import read_commits
from delta_core.maintenance.clone.history.kept_log import KeptLog
from delta_core.maintenance.clone.history.names import FILE_ACTIONS, NamedFile, Names
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import ObjectPlace
from delta_core.storage.log_store import LogStore
from delta_core.table_features.support import require_write_support
from delta_core.table_features.writer_kind import WriterKind

_COMMITS_AT_ONCE = 64
_COLUMNS = ["path", "size_bytes", "deletion_vector"]
_V2_CHECKPOINTS = "v2Checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedObject:
    """Where an object is, and the size that the log gives; None where no action says it."""

    place: ObjectPlace
    size_bytes: int | None


@dataclass(slots=True, kw_only=True)
class NamedFiles:
    """What the kept versions name, and whether all of them can be copied.

    Attributes:
        names: the words of the clone's log.
        objects: by their paths in the clone's store.
        protocol, metadata: of the version that was looked at last.
        may_have_sidecars: whether a checkpoint with the name of a classic one may have sidecars.
    """

    names: Names
    objects: dict[str, NamedObject] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    may_have_sidecars: bool = False

    def begin(self, first: Snapshot, *, with_files: bool) -> None:
        """Look at the version that the log starts with; `with_files`: at its files and tombstones.

        Raises:
            UnsupportedTableFeatureError: it needs something that cannot be cloned.
            CorruptLogError: it cannot be read.
            PathEscapeError: it names a file outside of the source and of the roots that are allowed.
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
        """Look at the commits. One request for each, several side by side.

        Raises:
            UnsupportedTableFeatureError: a version needs something that cannot be cloned.
            CorruptLogError: a commit is damaged.
            ObjectNotFoundError: a commit is gone.
            PathEscapeError: one names a file outside of the source and of the roots that are allowed.
        """
        for start in range(0, len(kept.commits), _COMMITS_AT_ONCE):
            for commit in read_commits(store, kept.commits[start : start + _COMMITS_AT_ONCE]):
                declared = False
                for _, kind, fields in commit.actions():
                    if kind == "protocol":
                        self.protocol, declared = protocol_from_json(fields), True
                    elif kind == "metaData":
                        self.metadata, declared = metadata_from_json(fields), True
                    elif kind in FILE_ACTIONS:
                        self._name(kind, fields)
                if declared:
                    self._require_support()

    def live_paths(self, snapshot: Snapshot) -> set[str]:
        """The paths in the clone of what a version needs to be read."""
        found: set[str] = set()
        for batch in snapshot.files.batches(["path", "deletion_vector"]):
            for row in batch.to_pylist():
                found.update(path for path, _ in self._named("add", _as_json(row)))
        return found

    def _rows(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._name("add", _as_json(row))

    def _name(self, kind: str, fields: Mapping[str, Any]) -> None:
        for path, found in self._named(kind, fields):
            known = self.objects.get(path)
            if known is None or known.size_bytes is None:
                self.objects[path] = found

    def _named(self, kind: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, NamedObject]]:
        file = self.names.of_file(fields["path"], kind=kind)
        yield _object(file, fields.get("size"))
        dv = fields.get("deletionVector")
        named = None if dv is None else self.names.of_deletion_vector(dv)
        if named is not None:
            # The size in a descriptor is that of one vector, and a file may hold several.
            yield _object(named, None)

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


def _object(file: NamedFile, size_bytes: int | None) -> tuple[str, NamedObject]:
    return file.path, NamedObject(place=file.place, size_bytes=size_bytes)


def _as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"path": row["path"], "size": row.get("size_bytes")}
    dv = row["deletion_vector"]
    if dv is not None and dv["storage_type"] is not None:
        fields["deletionVector"] = {
            "storageType": dv["storage_type"],
            "pathOrInlineDv": dv["path_or_inline_dv"],
        }
    return fields
