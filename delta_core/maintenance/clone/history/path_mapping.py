"""The paths of the source's files in a clone that keeps the source's log.

A file below the source's root keeps its relative path, so relative paths in the log stay valid. A file of
another table, which the log of a shallow clone refers to by an absolute path, gets a name that is derived
from its location, so that a repeated or continued clone uses the same name. A deletion vector file with an
absolute path gets its name in the same way (PROTOCOL.md, "Add File and Remove File", "Deletion Vectors").
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from delta_core.actions import DeletionVectorDescriptor
from delta_core.actions.json_codec import iter_lines
from delta_core.deletion_vectors import z85
from delta_core.maintenance.clone.translation import deletion_vector_place
from delta_core.storage.data_access import DataAccess, ObjectLocation
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import ascii_data_path, encode_data_path, uri_scheme

FILE_ACTIONS = ("add", "remove", "cdc")

_CHANGES = "_change_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedFile:
    """An object that the log refers to.

    Attributes:
        place: the object in the source.
        path: its decoded path in the clone's store.
        raw: its path in the clone's log; None when it equals the path in the source's log.
    """

    place: ObjectLocation
    path: str
    raw: str | None


@dataclass(slots=True, kw_only=True)
class PathMapping:
    """Maps paths in the source's log to paths in the clone's log.

    Attributes:
        source: the source's store.
        access: the roots that absolute paths may lead to.
        any_changed: whether a path that was mapped differs between the two logs.
    """

    source: LogStore
    access: DataAccess
    any_changed: bool = field(default=False, init=False)

    def of_file(self, raw: str, *, kind: str = "add") -> MappedFile:
        """The file at the path `raw` of an action; `kind` is the action's JSON key.

        Raises:
            PathEscapeError: the file is neither in the source nor below an allowed root.
        """
        place = self.access.locate(raw, store=self.source)
        if uri_scheme(raw) is None and not raw.startswith("/"):
            return MappedFile(place=place, path=place.path, raw=None)
        self.any_changed = True
        if place.store.uri == self.source.uri:
            return MappedFile(place=place, path=place.path, raw=encode_data_path(place.path))
        name = posixpath.basename(place.path)
        dot = name.find(".", 1)
        path = f"part-{_file_id(place)}{name[dot:] if dot > 0 else ''}"
        if kind == "cdc":
            path = f"{_CHANGES}/{path}"
        return MappedFile(place=place, path=path, raw=encode_data_path(path))

    def of_deletion_vector(self, fields: Mapping[str, Any]) -> MappedFile | None:
        """The file of a deletion vector; `raw` has storage type `u`. None for an inline deletion vector.

        Raises:
            PathEscapeError: the file is neither in the source nor below an allowed root.
            CorruptLogError: the descriptor has no valid file name.
        """
        if fields["storageType"] == "i":
            return None
        dv = DeletionVectorDescriptor(
            storage_type=fields["storageType"],
            path_or_inline_dv=fields["pathOrInlineDv"],
            offset=None,
            size_in_bytes=0,
            cardinality=0,
        )
        place = deletion_vector_place(dv, source=self.source, access=self.access)
        if dv.storage_type != "p":
            return MappedFile(place=place, path=place.path, raw=None)
        self.any_changed = True
        file_id = _file_id(place)
        return MappedFile(place=place, path=f"deletion_vector_{file_id}.bin", raw=z85.encode(file_id.bytes))

    def translated(self, data: bytes, *, sidecar_bytes: Mapping[str, int] | None = None) -> bytes:
        """Lines of actions with the clone's paths. A line without changed paths stays byte for byte equal.

        Args:
            data: a commit, a log compaction, or a JSON checkpoint; the caller has validated it.
            sidecar_bytes: the sizes of the clone's sidecars, by file name.
        """
        lines = []
        any_changed = False
        for _, line in iter_lines(data):
            action = orjson.loads(line)
            changed = False
            for kind in FILE_ACTIONS:
                fields = action.get(kind)
                if fields is not None:
                    changed = self._rename(kind, fields) or changed
            sidecar = action.get("sidecar")
            if sidecar is not None and sidecar_bytes is not None:
                sidecar["sizeInBytes"] = sidecar_bytes[posixpath.basename(sidecar["path"])]
                changed = True
            lines.append(orjson.dumps(action) if changed else line)
            any_changed = any_changed or changed
        return b"".join(line + b"\n" for line in lines) if any_changed else data

    def _rename(self, kind: str, fields: dict[str, Any]) -> bool:
        file = self.of_file(fields["path"], kind=kind)
        if file.raw is not None:
            fields["path"] = file.raw
        dv = fields.get("deletionVector")
        referenced = None if dv is None else self.of_deletion_vector(dv)
        if dv is None or referenced is None or referenced.raw is None:
            return file.raw is not None
        dv.update(storageType="u", pathOrInlineDv=referenced.raw)
        return True


def _file_id(place: ObjectLocation) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{place.store.uri}/{ascii_data_path(place.path)}")
