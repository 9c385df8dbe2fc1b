"""The files that contain a table's deletion vectors (PROTOCOL.md, "Derived Fields")."""

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
    """Keys of the possible store paths of the files of deletion vectors: see `deletion_vector_keys`.

    Args:
        dvs: the column `deletion_vector` of files or tombstones.
        root_uri: the table's canonical URI.

    Raises:
        MaintenanceError: see `deletion_vector_keys`.
    """
    keys: set[str] = set()
    if dvs.null_count == len(dvs):
        return keys
    kinds = pc.struct_field(dvs, "storage_type")
    # A checkpoint may contain a deletion vector whose fields are all null. Inline ones have no file.
    stored = pc.fill_null(pc.not_equal(kinds, "i"), False)
    for kind in pc.unique(kinds.filter(stored)).to_pylist():
        of_kind = dvs.filter(pc.fill_null(pc.equal(kinds, kind), False))
        # Unique, since one file contains the deletion vectors of many data files.
        for dv_path in pc.unique(pc.struct_field(of_kind, "path_or_inline_dv")).to_pylist():
            keys.update(_keys(kind, dv_path or "", root_uri))
    return keys


def deletion_vector_keys(dv: DeletionVectorDescriptor | None, *, root_uri: str) -> set[str]:
    """Keys of the possible store paths of a deletion vector's file; empty for an inline deletion vector.

    Includes every spelling that could mean a file below the root. A relative path that leads out of the root
    has no key, since a vacuum never lists or deletes files outside the root.

    Raises:
        MaintenanceError: the file cannot be determined, so no file may be deleted.
    """
    if dv is None or dv.storage_type == "i":
        return set()
    return set(_keys(dv.storage_type, dv.path_or_inline_dv, root_uri))


def _keys(storage_type: str, dv_path: str, root_uri: str) -> Iterator[str]:
    if storage_type == "p":
        yield from protected_keys([dv_path], root_uri=root_uri)
        return
    if storage_type != "u":
        raise _unknown(storage_type, dv_path, f"The storage type {storage_type!r} is not one of u, i or p.")
    prefix, encoded = dv_path[:-UUID_CHARACTERS], dv_path[-UUID_CHARACTERS:]
    try:
        identity = uuid.UUID(bytes=z85.decode(encoded))
    except ValueError as error:
        raise _unknown(storage_type, dv_path, str(error)) from error
    # Readers differ in the prefixes that they accept; the reader of `delta_core` accepts one plain directory.
    for spelling in (prefix, unquote(prefix)):
        key = spelled_key(f"{spelling}/deletion_vector_{identity}.bin")
        if key is not None:
            yield key


def _unknown(storage_type: str, dv_path: str, cause: str) -> MaintenanceError:
    return MaintenanceError(
        f"The file of the deletion vector {storage_type}:{dv_path[:80]} cannot be determined. "
        "Nothing was deleted.",
        cause=cause,
        fix="Restore the table to a version without this deletion vector, or the log from a backup. "
        "Then run the vacuum again.",
    )
