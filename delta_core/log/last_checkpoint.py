"""`_last_checkpoint`: a hint and nothing more (PROTOCOL.md, "Last Checkpoint File")."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from delta_core.errors import StorageError
from delta_core.log.log_path import LAST_CHECKPOINT_PATH, MAX_VERSION
from delta_core.storage.log_store import LogStore

MAX_HINT_BYTES = 1 << 20
"""A larger file is no hint. Those of other writers hold a schema, too, and a few sidecars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheckpoint:
    """Where the newest checkpoint was, when this was written.

    Attributes:
        size: number of actions in the checkpoint.
        parts: number of parts of a multi-part checkpoint.
        num_add_files: number of `add` actions.
    """

    version: int
    size: int | None = None
    parts: int | None = None
    size_bytes: int | None = None
    num_add_files: int | None = None


def read_last_checkpoint(store: LogStore) -> LastCheckpoint | None:
    """The hint; None when it is missing, unreadable, too large or makes no sense. One request."""
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
    return LastCheckpoint(
        version=version,
        size=_integer(parsed, "size"),
        parts=_integer(parsed, "parts"),
        size_bytes=_integer(parsed, "sizeInBytes"),
        num_add_files=_integer(parsed, "numOfAddFiles"),
    )


def write_last_checkpoint(store: LogStore, checkpoint: LastCheckpoint) -> None:
    """Replace the hint. One request."""
    fields = {
        "version": checkpoint.version,
        "size": checkpoint.size,
        "parts": checkpoint.parts,
        "sizeInBytes": checkpoint.size_bytes,
        "numOfAddFiles": checkpoint.num_add_files,
    }
    present = {key: value for key, value in fields.items() if value is not None}
    store.put(LAST_CHECKPOINT_PATH, orjson.dumps(present))


def _read(store: LogStore) -> bytes:
    """The file, or of a too large one so much that it shows."""
    if store.remote:
        # A reader in parts would first ask for the size, and every table that is opened would wait for that.
        return store.read(LAST_CHECKPOINT_PATH)
    with store.open_input(LAST_CHECKPOINT_PATH) as source:
        return bytes(source.read(MAX_HINT_BYTES + 1))


def _integer(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    return value if type(value) is int else None
