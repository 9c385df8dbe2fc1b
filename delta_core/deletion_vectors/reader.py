"""Reading a deletion vector: from its descriptor in the log to the positions of deleted rows."""

from __future__ import annotations

import uuid
import zlib

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors import z85
from delta_core.deletion_vectors.format import (
    FILE_VERSION,
    FRAME_BYTES,
    MAGIC,
    MAX_DELETION_VECTOR_BYTES,
    UUID_CHARACTERS,
)
from delta_core.deletion_vectors.roaring import MalformedBitmap, Positions, decode_portable64
from delta_core.errors import InvalidTableError
from delta_core.storage.data_access import TABLE_ONLY, DataAccess, ObjectLocation
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import resolve_data_path

# A value takes at most 27 bytes: when it is alone in its bucket (4 bytes each for key, cookie and count), in
# its container (4 bytes each for header and offset, and 1 byte of flags) and in its run (2 bytes for the
# count and 4 for the run). For each 2^32 rows there may be an empty bucket of 12 bytes.
_MAX_BYTES_PER_VALUE = 32
_MAX_OVERHEAD_BYTES = 4096
# Of a deletion vector larger than this, the first bytes are checked before the rest is read.
_LARGE_BYTES = 1 << 16


def read_deletion_vector(
    store: LogStore,
    descriptor: DeletionVectorDescriptor,
    *,
    num_rows: int,
    access: DataAccess = TABLE_ONLY,
) -> Positions:
    """The positions of the deleted rows, ascending.

    The function checks the format version of the file, the size, the checksum, the magic number, and the
    number of rows against the descriptor and the data file. The number of rows bounds the memory: data with
    more bytes than that number of rows can take is not read.

    Requests: none for an inline deletion vector. Otherwise the file is opened, and its first byte, the first
    eight bytes of a large deletion vector, and the deletion vector are read. Adjacent reads are combined.

    Args:
        store: the table's store.
        descriptor: the descriptor from the log.
        num_rows: the number of rows of the data file. A small deletion vector can claim many millions of
            rows, so it is decoded only when they fit the file.
        access: the locations besides the table where the deletion vector's file may be.

    Raises:
        MissingDataFileError: the deletion vector's file is not in the store.
        InvalidTableError: the deletion vector is damaged or contradicts its descriptor.
        PathEscapeError: the deletion vector's file is outside the table.
    """
    where = f"{descriptor.storage_type}:{descriptor.path_or_inline_dv[:80]}"
    if descriptor.cardinality > num_rows:
        raise _malformed(where, f"It deletes {descriptor.cardinality} rows of a file with {num_rows} rows.")
    if descriptor.cardinality < 0 or not 0 <= descriptor.size_in_bytes < MAX_DELETION_VECTOR_BYTES:
        raise _malformed(
            where,
            f"Its descriptor states {descriptor.cardinality} rows and {descriptor.size_in_bytes} bytes.",
        )
    if descriptor.size_in_bytes > _max_bytes(descriptor.cardinality, num_rows=num_rows):
        raise _malformed(
            where,
            f"Its descriptor states {descriptor.size_in_bytes} bytes, which is too much for "
            f"{descriptor.cardinality} rows.",
        )
    try:
        data = _inline(descriptor) if descriptor.storage_type == "i" else _stored(store, descriptor, access)
        _require_magic(data[:4])
        return decode_portable64(data[4:], cardinality=descriptor.cardinality)
    except ValueError as error:
        raise _malformed(where, str(error)) from error


def deletion_vector_path(descriptor: DeletionVectorDescriptor, *, root_uri: str) -> str | None:
    """The store path (decoded, relative to the root) of a deletion vector's file; None if it is inline.

    Raises:
        ValueError: the storage type or the name is invalid.
        PathEscapeError: the path leaves the table root.
    """
    path = descriptor.path_or_inline_dv
    if descriptor.storage_type == "i":
        return None
    if descriptor.storage_type == "p":
        return resolve_data_path(path, root_uri=root_uri)
    if descriptor.storage_type != "u":
        raise ValueError(f"Its storage type is {descriptor.storage_type!r}, expected u, i or p.")
    if len(path) < UUID_CHARACTERS:
        raise ValueError("Its name is shorter than a UUID.")
    prefix, encoded = path[:-UUID_CHARACTERS], path[-UUID_CHARACTERS:]
    if "/" in prefix or prefix in (".", ".."):
        raise ValueError("Its prefix is not a single directory.")
    name = f"deletion_vector_{uuid.UUID(bytes=z85.decode(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def deletion_vector_place(
    descriptor: DeletionVectorDescriptor, *, store: LogStore, access: DataAccess
) -> ObjectLocation | None:
    """The location of a deletion vector's file; None if it is inline.

    Raises:
        ValueError: the storage type or the name is invalid.
        PathEscapeError: the path is outside the table and the locations of `access`.
    """
    if descriptor.storage_type == "p":
        return access.locate(descriptor.path_or_inline_dv, store=store)
    path = deletion_vector_path(descriptor, root_uri=store.uri)
    return None if path is None else ObjectLocation(store, path)


def _max_bytes(cardinality: int, *, num_rows: int) -> int:
    """The maximum size of a deletion vector with this number of rows, for any choice of containers."""
    return _MAX_OVERHEAD_BYTES + _MAX_BYTES_PER_VALUE * (cardinality + (num_rows >> 32))


def _require_magic(head: bytes) -> None:
    magic = int.from_bytes(head, "little")
    if magic != MAGIC:
        raise MalformedBitmap(f"Its magic number is {magic}, expected {MAGIC}.")


def _inline(descriptor: DeletionVectorDescriptor) -> bytes:
    data = z85.decode(descriptor.path_or_inline_dv)
    # The base85 encoding is padded to groups of four bytes.
    if not 0 <= len(data) - descriptor.size_in_bytes < 4:
        raise MalformedBitmap(
            f"It holds {len(data)} bytes, its descriptor states {descriptor.size_in_bytes} bytes."
        )
    return data[: descriptor.size_in_bytes]


def _stored(store: LogStore, descriptor: DeletionVectorDescriptor, access: DataAccess) -> bytes:
    place = deletion_vector_place(descriptor, store=store, access=access)
    assert place is not None
    offset = descriptor.offset or 0
    if offset < 0:
        raise MalformedBitmap(f"Its offset is {offset}, which is negative.")
    with access.open(
        place.store,
        place.path,
        kind="deletion vector file",
        fix="Restore the file from a backup. Without it, deleted rows cannot be distinguished.",
    ) as source:
        try:
            version = source.read(1)
            if version != bytes([FILE_VERSION]):
                raise MalformedBitmap(f"Its file has the format version {version.hex()!r}, expected '01'.")
            # Without an offset the deletion vector is the first one, right after the format version.
            start = max(offset, 1)
            if start + descriptor.size_in_bytes + FRAME_BYTES > source.size():
                # Checked before the read, which would allocate the stated size of up to two gigabytes.
                raise MalformedBitmap("Its file ends early.")
            source.seek(start)
            if descriptor.size_in_bytes > _LARGE_BYTES:
                head = source.read(8)
                _require_size(head[:4], descriptor)
                _require_magic(head[4:])
                source.seek(start)
            framed = source.read(4 + descriptor.size_in_bytes + 4)
        except OSError as error:
            raise MalformedBitmap(f"Reading its file failed: {error}.") from error
    if len(framed) != descriptor.size_in_bytes + FRAME_BYTES:
        raise MalformedBitmap("Its file ends early.")
    _require_size(framed[:4], descriptor)
    data = framed[4:-4]
    if zlib.crc32(data) != int.from_bytes(framed[-4:], "big"):
        raise MalformedBitmap("Its checksum is wrong.")
    return bytes(data)


def _require_size(head: bytes, descriptor: DeletionVectorDescriptor) -> None:
    size = int.from_bytes(head, "big")
    if size != descriptor.size_in_bytes:
        raise MalformedBitmap(
            f"Its file states {size} bytes, its descriptor {descriptor.size_in_bytes} bytes."
        )


def _malformed(where: str, cause: str) -> InvalidTableError:
    return InvalidTableError(
        f"The deletion vector {where} cannot be used.",
        cause=cause,
        fix="Restore its file from a backup, or restore the table to an earlier version.",
    )
