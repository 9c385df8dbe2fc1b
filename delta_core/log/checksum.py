"""Version checksums: what a writer says a version holds (PROTOCOL.md, "Version Checksum File").

Advisory: a missing or unreadable one is passed over, and a table is never refused for what one says. What
it is good for is to notice a log that somebody has changed, and to know protocol and metadata without
reading any commit.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from delta_core.actions import Metadata, Protocol
from delta_core.actions.json_codec import metadata_from_json, protocol_from_json
from delta_core.actions.validation import CHECKS, InvalidAction
from delta_core.errors import CorruptLogError, DeltaWarning, StorageError
from delta_core.storage.log_store import LogStore, ObjectInfo, read_immutable

MAX_CHECKSUM_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChecksum:
    """What the file says.

    Attributes:
        path: the file.
        num_files: live files.
        table_size_bytes: their sizes, summed.
        protocol: None in files of early writers.
        metadata: None in files of early writers.
    """

    path: str
    num_files: int
    table_size_bytes: int
    protocol: Protocol | None = None
    metadata: Metadata | None = None

    def discrepancies(
        self, *, num_files: int, table_size_bytes: int, protocol: Protocol, metadata: Metadata
    ) -> list[str]:
        """Where the state that was replayed is another one, in words; empty when nowhere."""
        found = [
            f"{what}: the checksum says {said}, the log gives {is_so}"
            for what, said, is_so in (
                ("number of files", self.num_files, num_files),
                ("size of the table in bytes", self.table_size_bytes, table_size_bytes),
            )
            if said != is_so
        ]
        return found + self.contradictions(protocol, metadata)

    def contradictions(self, protocol: Protocol, metadata: Metadata) -> list[str]:
        """Where protocol or metadata of the log are others; of the metadata what decides about reading."""
        found = []
        if self.protocol is not None and self.protocol != protocol:
            found.append(f"protocol: the checksum says {self.protocol}, the log gives {protocol}")
        if self.metadata is not None:
            for name in ("id", "schema_string", "partition_columns", "configuration"):
                said, is_so = getattr(self.metadata, name), getattr(metadata, name)
                if said != is_so:
                    found.append(f"metadata, {name}: the checksum says {said!r}, the log gives {is_so!r}")
        return found


def read_checksum(store: LogStore, info: ObjectInfo) -> VersionChecksum | None:
    """A version's checksum; None, with a DeltaWarning, when it cannot be used. One request."""
    try:
        if info.size_bytes > MAX_CHECKSUM_BYTES:
            raise _damaged(info.path, f"it has {info.size_bytes} bytes, more than {MAX_CHECKSUM_BYTES}")
        return parse_checksum(read_immutable(store, info.path), path=info.path)
    except (CorruptLogError, StorageError) as error:
        warnings.warn(f"{error} The checksum is passed over.", DeltaWarning, stacklevel=2)
        return None


def parse_checksum(data: bytes, *, path: str) -> VersionChecksum:
    """A version's checksum from its bytes.

    Raises:
        CorruptLogError: not one JSON object, or a field that is read is missing or wrong.
    """
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _damaged(path, f"it is not JSON ({error})") from error
    if not isinstance(fields, dict):
        raise _damaged(path, "it is not a JSON object")
    protocol, metadata = (
        _action(fields, "protocol", "protocol", path),
        _action(fields, "metadata", "metaData", path),
    )
    for name in ("numProtocol", "numMetadata"):
        if _count(fields, name, path) != 1:
            raise _damaged(path, f"{name} is {fields[name]}, there is exactly one")
    return VersionChecksum(
        path=path,
        num_files=_count(fields, "numFiles", path),
        table_size_bytes=_count(fields, "tableSizeBytes", path),
        protocol=None if protocol is None else protocol_from_json(protocol),
        metadata=None if metadata is None else metadata_from_json(metadata),
    )


def _count(fields: Mapping[str, Any], name: str, path: str) -> int:
    value = fields.get(name)
    if type(value) is not int or value < 0:
        raise _damaged(path, f"{name} is {value!r}, expected a count")
    return value


def _action(fields: Mapping[str, Any], name: str, kind: str, path: str) -> dict[str, Any] | None:
    found = fields.get(name)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise _damaged(path, f"{name} is not a JSON object")
    try:
        CHECKS[kind](found)
    except InvalidAction as error:
        raise _damaged(path, f"{name}.{error}") from None
    return found


def _damaged(path: str, cause: str) -> CorruptLogError:
    return CorruptLogError(
        f"The version checksum {path!r} cannot be read.",
        cause=cause[:1000],
        fix="Delete it: the table can be read without.",
    )
