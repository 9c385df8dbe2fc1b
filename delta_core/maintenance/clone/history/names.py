"""The names of the source's files in a clone that keeps its log.

What lies below the source's root keeps its path, so the log's words about it stay true. A file of another
table, which the log of a shallow clone names by an absolute path, gets a name that is worked out from where
it is: whoever clones again, or goes on after a crash, gets the same one. A vector that is named by an
absolute path gets a name in the same way (PROTOCOL.md, "Add File and Remove File", "Deletion Vectors").
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
from delta_core.storage.data_access import DataAccess, ObjectPlace
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import ascii_data_path, encode_data_path, uri_scheme

FILE_ACTIONS = ("add", "remove", "cdc")

_CHANGES = "_change_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFile:
    """An object that the log names.

    Attributes:
        place: where it is.
        path: where it goes in the clone's store, decoded.
        raw: how the clone's log names it; None where it does so as the source's.
    """

    place: ObjectPlace
    path: str
    raw: str | None


@dataclass(slots=True, kw_only=True)
class Names:
    """From the words of the source's log to the clone's.

    Attributes:
        source: the source's store.
        access: where absolute paths may lead.
        any_other: whether any name that was asked for is another one in the clone.
    """

    source: LogStore
    access: DataAccess
    any_other: bool = field(default=False, init=False)

    def of_file(self, raw: str, *, kind: str = "add") -> NamedFile:
        """What a path names. Raises PathEscapeError: neither in the source nor where it is allowed."""
        place = self.access.locate(raw, store=self.source)
        if uri_scheme(raw) is None and not raw.startswith("/"):
            return NamedFile(place=place, path=place.path, raw=None)
        self.any_other = True
        if place.store.uri == self.source.uri:
            return NamedFile(place=place, path=place.path, raw=encode_data_path(place.path))
        name = posixpath.basename(place.path)
        dot = name.find(".", 1)
        path = f"part-{_number(place)}{name[dot:] if dot > 0 else ''}"
        if kind == "cdc":
            path = f"{_CHANGES}/{path}"
        return NamedFile(place=place, path=path, raw=encode_data_path(path))

    def of_deletion_vector(self, fields: Mapping[str, Any]) -> NamedFile | None:
        """The file of a deletion vector; `raw` goes with the storage type `u`. None for an inline vector.

        Raises:
            PathEscapeError: neither in the source nor where it is allowed.
            CorruptLogError: it has no valid name.
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
            return NamedFile(place=place, path=place.path, raw=None)
        self.any_other = True
        number = _number(place)
        return NamedFile(place=place, path=f"deletion_vector_{number}.bin", raw=z85.encode(number.bytes))

    def translated(self, data: bytes, *, sidecar_bytes: Mapping[str, int] | None = None) -> bytes:
        """Lines of actions in the clone's words; a line that says the same there stays as it is.

        Args:
            data: a commit, a log compaction, or a checkpoint that is written like one; it was checked before.
            sidecar_bytes: the sizes that sidecars have in the clone, by name.
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
        named = None if dv is None else self.of_deletion_vector(dv)
        if dv is None or named is None or named.raw is None:
            return file.raw is not None
        dv.update(storageType="u", pathOrInlineDv=named.raw)
        return True


def _number(place: ObjectPlace) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{place.store.uri}/{ascii_data_path(place.path)}")
