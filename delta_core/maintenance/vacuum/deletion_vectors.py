"""Which files in the store a table's deletion vectors may be in (PROTOCOL.md, "Derived Fields")."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors import z85
from delta_core.deletion_vectors.format import UUID_CHARACTERS
from delta_core.errors import MaintenanceError
from delta_core.maintenance.vacuum.path_identity import protected_keys, spelled_key


def stored_deletion_vector_keys(dvs: pa.Array | pa.ChunkedArray, *, root_uri: str) -> set[str]:
    """Keys of every store path that the files of deletion vectors may have: see `deletion_vector_keys`.

    Args:
        vectors: the column `deletion_vector` of files, or of tombstones.
        root_uri: the table's canonical URI.

    Raises:
        MaintenanceError: see `deletion_vector_keys`.
    """
    keys: set[str] = set()
    if dvs.null_count == len(dvs):
        return keys
    kinds = pc.struct_field(dvs, "storage_type")
    # A checkpoint may hold a vector none of whose fields is there; one that is inline is in no file.
    stored = pc.fill_null(pc.not_equal(kinds, "i"), False)
    for kind in pc.unique(kinds.filter(stored)).to_pylist():
        of_kind = dvs.filter(pc.fill_null(pc.equal(kinds, kind), False))
        # One file has the vectors of many.
        for text in pc.unique(pc.struct_field(of_kind, "path_or_inline_dv")).to_pylist():
            keys.update(_keys(kind, text or "", root_uri))
    return keys


def deletion_vector_keys(dv: DeletionVectorDescriptor | None, *, root_uri: str) -> set[str]:
    """Keys of every store path that a vector's file may have; none for one that is inline.

    Every spelling counts that could mean a file below the root; of a path that leads out of it there is
    none, since nothing outside is ever listed or deleted.

    Raises:
        MaintenanceError: which file is meant cannot be told, so none may be deleted.
    """
    if dv is None or dv.storage_type == "i":
        return set()
    return set(_keys(dv.storage_type, dv.path_or_inline_dv, root_uri))


def _keys(storage_type: str, text: str, root_uri: str) -> Iterator[str]:
    if storage_type == "p":
        yield from protected_keys([text], root_uri=root_uri)
        return
    if storage_type != "u":
        raise _unknown(storage_type, text, f"its storage type is {storage_type!r}, expected u, i or p")
    prefix, encoded = text[:-UUID_CHARACTERS], text[-UUID_CHARACTERS:]
    try:
        identity = uuid.UUID(bytes=z85.decode(encoded))
    except ValueError as error:
        raise _unknown(storage_type, text, str(error)) from error
    # Readers differ in what they take for a prefix; ours takes one plain directory.
    for spelling in (prefix, unquote(prefix)):
        key = spelled_key(f"{spelling}/deletion_vector_{identity}.bin")
        if key is not None:
            yield key


def _unknown(storage_type: str, text: str, cause: str) -> MaintenanceError:
    return MaintenanceError(
        f"Nothing is deleted: the file of the deletion vector {storage_type}:{text[:80]} cannot be told.",
        cause=cause,
        fix="Restore the table to a version without it, or the log from a backup, then run again.",
    )
