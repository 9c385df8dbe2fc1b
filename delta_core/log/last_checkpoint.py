"""`_last_checkpoint`: a hint to the newest checkpoint (PROTOCOL.md, "Last Checkpoint File")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from delta_core.errors import StorageError
from delta_core.log.canonical_json import CHECKSUM_KEY, json_checksum
from delta_core.log.log_path import LAST_CHECKPOINT_PATH, MAX_VERSION
from delta_core.storage.log_store import LogStore, ObjectInfo

MAX_HINT_BYTES = 1 << 20
"""A larger file is ignored. Hints of other writers also hold a schema and a few sidecars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheckpoint:
    """The newest checkpoint at the time when the hint was written.

    Attributes:
        size: number of actions in the checkpoint.
        parts: number of parts of a multi-part checkpoint.
        num_add_files: number of `add` actions.
        v2: details of a checkpoint of the V2 spec.
    """

    version: int
    size: int | None = None
    parts: int | None = None
    size_bytes: int | None = None
    num_add_files: int | None = None
    v2: V2CheckpointHint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class V2CheckpointHint:
    """The details of a V2 checkpoint in a hint. Written for other readers, not read by this library.

    Attributes:
        manifest: the checkpoint itself.
        other_actions: its actions other than file actions, each as the JSON object of its line; None if they
            are too many for a hint.
        sidecars: its sidecars; None if they are too many for a hint.
    """

    manifest: ObjectInfo
    other_actions: Sequence[Mapping[str, Any]] | None
    sidecars: Sequence[ObjectInfo] | None

    def to_json(self) -> dict[str, Any]:
        """The fields of `v2Checkpoint`, with delta-spark's names."""
        fields = sidecar_fields(self.manifest)
        if self.other_actions is not None:
            fields["nonFileActions"] = list(self.other_actions)
        if self.sidecars is not None:
            fields["sidecarFiles"] = [sidecar_fields(info) for info in self.sidecars]
        return fields


def sidecar_fields(info: ObjectInfo) -> dict[str, Any]:
    """The fields that describe a checkpoint file in the log (PROTOCOL.md, "Sidecar File Information")."""
    name = info.path.rpartition("/")[2]
    return {"path": name, "sizeInBytes": info.size_bytes, "modificationTime": info.modified_ms}


def read_last_checkpoint(store: LogStore) -> LastCheckpoint | None:
    """The hint `_last_checkpoint`. One request.

    None when the hint is missing, unreadable or too large, or contradicts its checksum.
    """
    try:
        data = _read(store)
        if len(data) > MAX_HINT_BYTES:
            return None
        parsed = orjson.loads(data)
    except (StorageError, orjson.JSONDecodeError):
        return None
    version = _integer(parsed, "version") if isinstance(parsed, dict) else None
    if version is None or not 0 <= version <= MAX_VERSION:
        return None
    checksum = parsed.get(CHECKSUM_KEY)
    if isinstance(checksum, str) and checksum != json_checksum(parsed):
        return None
    return LastCheckpoint(
        version=version,
        size=_integer(parsed, "size"),
        parts=_integer(parsed, "parts"),
        size_bytes=_integer(parsed, "sizeInBytes"),
        num_add_files=_integer(parsed, "numOfAddFiles"),
    )


def write_last_checkpoint(store: LogStore, checkpoint: LastCheckpoint) -> None:
    """Replace the hint `_last_checkpoint`. One request."""
    fields = {
        "version": checkpoint.version,
        "size": checkpoint.size,
        "parts": checkpoint.parts,
        "sizeInBytes": checkpoint.size_bytes,
        "numOfAddFiles": checkpoint.num_add_files,
    }
    present: dict[str, Any] = {key: value for key, value in fields.items() if value is not None}
    if checkpoint.v2 is not None:
        present["v2Checkpoint"] = checkpoint.v2.to_json()
    present[CHECKSUM_KEY] = json_checksum(present)
    store.put(LAST_CHECKPOINT_PATH, orjson.dumps(present))


def _read(store: LogStore) -> bytes:
    """The file's bytes; of a local file at most MAX_HINT_BYTES + 1."""
    if store.remote:
        # A partial read needs the size first: one more request for every table that is opened.
        return store.read(LAST_CHECKPOINT_PATH)
    with store.open_input(LAST_CHECKPOINT_PATH) as source:
        return bytes(source.read(MAX_HINT_BYTES + 1))


def _integer(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    return value if type(value) is int else None
