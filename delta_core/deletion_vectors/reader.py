"""From a descriptor in the log to the positions of deleted rows."""

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
from delta_core.storage.data_access import TABLE_ONLY, DataAccess, ObjectPlace
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import resolve_data_path

# A value takes 27 at most, when it is the only one of its bucket (a key, a cookie and a count, 4 each), of
# its container (a header and an offset, 4 each, and a byte of flags) and of its run (a count of 2, a run of
# 4). A bucket of 12 for each 2^32 rows may be there and be empty.
_MOST_BYTES_OF_VALUE = 32
_BYTES_OF_FRAME = 4096
# A vector that is much larger than a request's answer is not read before its first bytes are right.
_LARGE_BYTES = 1 << 16


def read_deletion_vector(
    store: LogStore,
    descriptor: DeletionVectorDescriptor,
    *,
    num_rows: int,
    access: DataAccess = TABLE_ONLY,
) -> Positions:
    """The positions of the deleted rows, ascending.

    Checked: the file's format version, the size, the checksum, the magic number, and the number of rows
    against the descriptor and the data file. That number bounds the memory: a vector with more bytes than so
    many rows can take is not read. Requests: none for an inline vector; else the file is opened, and its
    first byte, a large vector's first eight and the vector are read, at once where they lie close together.

    Args:
        store: the table's store.
        descriptor: as in the log.
        num_rows: how many rows the data file has. A small vector can claim many millions of rows, so it is
            not unfolded before that is known.
        access: where besides the table the vector's file may be.

    Raises:
        MissingDataFileError: the vector's file is not in the store.
        InvalidTableError: damaged, or not what the descriptor says.
        PathEscapeError: the vector's file is outside the table.
    """
    where = f"{descriptor.storage_type}:{descriptor.path_or_inline_dv[:80]}"
    if descriptor.cardinality > num_rows:
        raise _malformed(where, f"it deletes {descriptor.cardinality} rows of a file that has {num_rows}")
    if descriptor.cardinality < 0 or not 0 <= descriptor.size_in_bytes < MAX_DELETION_VECTOR_BYTES:
        raise _malformed(where, f"its descriptor says {descriptor.size_in_bytes} bytes")
    if descriptor.size_in_bytes > _most_bytes(descriptor.cardinality, num_rows=num_rows):
        raise _malformed(
            where, f"{descriptor.cardinality} rows never take {descriptor.size_in_bytes} bytes, as it says"
        )
    try:
        data = _inline(descriptor) if descriptor.storage_type == "i" else _stored(store, descriptor, access)
        _require_magic(data[:4])
        return decode_portable64(data[4:], cardinality=descriptor.cardinality)
    except ValueError as error:
        raise _malformed(where, str(error)) from error


def deletion_vector_path(descriptor: DeletionVectorDescriptor, *, root_uri: str) -> str | None:
    """The store path (decoded, relative to the root) of the vector's file; None for an inline vector.

    Raises:
        ValueError: no such storage type, or no valid name.
        PathEscapeError: the path leaves the table root.
    """
    text = descriptor.path_or_inline_dv
    if descriptor.storage_type == "i":
        return None
    if descriptor.storage_type == "p":
        return resolve_data_path(text, root_uri=root_uri)
    if descriptor.storage_type != "u":
        raise ValueError(f"its storage type is {descriptor.storage_type!r}, expected u, i or p")
    if len(text) < UUID_CHARACTERS:
        raise ValueError("its name is shorter than a UUID")
    prefix, encoded = text[:-UUID_CHARACTERS], text[-UUID_CHARACTERS:]
    if "/" in prefix or prefix in (".", ".."):
        raise ValueError("its prefix is not one directory")
    name = f"deletion_vector_{uuid.UUID(bytes=z85.decode(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def deletion_vector_place(
    descriptor: DeletionVectorDescriptor, *, store: LogStore, access: DataAccess
) -> ObjectPlace | None:
    """Where the vector's file is; None for an inline vector.

    Raises:
        ValueError: no such storage type, or no valid name.
        PathEscapeError: the path is below none of the roots.
    """
    if descriptor.storage_type == "p":
        return access.locate(descriptor.path_or_inline_dv, store=store)
    path = deletion_vector_path(descriptor, root_uri=store.uri)
    return None if path is None else ObjectPlace(store, path)


def _most_bytes(cardinality: int, *, num_rows: int) -> int:
    """What a vector of so many rows cannot exceed, whatever containers its writer chose."""
    return _BYTES_OF_FRAME + _MOST_BYTES_OF_VALUE * (cardinality + (num_rows >> 32))


def _require_magic(found: bytes) -> None:
    magic = int.from_bytes(found, "little")
    if magic != MAGIC:
        raise MalformedBitmap(f"its magic number is {magic}, expected {MAGIC}")


def _inline(descriptor: DeletionVectorDescriptor) -> bytes:
    data = z85.decode(descriptor.path_or_inline_dv)
    # The text is padded to groups of four bytes.
    if not 0 <= len(data) - descriptor.size_in_bytes < 4:
        raise MalformedBitmap(f"it holds {len(data)} bytes, its descriptor says {descriptor.size_in_bytes}")
    return data[: descriptor.size_in_bytes]


def _stored(store: LogStore, descriptor: DeletionVectorDescriptor, access: DataAccess) -> bytes:
    place = deletion_vector_place(descriptor, store=store, access=access)
    assert place is not None
    offset = descriptor.offset or 0
    if offset < 0:
        raise MalformedBitmap(f"its offset is {offset}")
    with access.open(
        place.store,
        place.path,
        kind="deletion vector file",
        fix="Restore the file: without it, deleted rows cannot be told from the others",
    ) as source:
        try:
            version = source.read(1)
            if version != bytes([FILE_VERSION]):
                raise MalformedBitmap(f"its file has format version {version.hex() or 'none'}, expected 01")
            # Without an offset the vector is the first one, right after the version.
            start = max(offset, 1)
            if start + descriptor.size_in_bytes + FRAME_BYTES > source.size():
                # Read so far, a size of two gigabytes would be allocated first.
                raise MalformedBitmap("its file ends early")
            source.seek(start)
            if descriptor.size_in_bytes > _LARGE_BYTES:
                head = source.read(8)
                _require_size(head[:4], descriptor)
                _require_magic(head[4:])
                source.seek(start)
            framed = source.read(4 + descriptor.size_in_bytes + 4)
        except OSError as error:
            raise MalformedBitmap(str(error)) from error
    if len(framed) != descriptor.size_in_bytes + FRAME_BYTES:
        raise MalformedBitmap("its file ends early")
    _require_size(framed[:4], descriptor)
    data = framed[4:-4]
    if zlib.crc32(data) != int.from_bytes(framed[-4:], "big"):
        raise MalformedBitmap("its checksum is wrong")
    return bytes(data)


def _require_size(found: bytes, descriptor: DeletionVectorDescriptor) -> None:
    size = int.from_bytes(found, "big")
    if size != descriptor.size_in_bytes:
        raise MalformedBitmap(f"its file says {size} bytes, its descriptor {descriptor.size_in_bytes}")


def _malformed(where: str, cause: str) -> InvalidTableError:
    return InvalidTableError(
        f"The deletion vector {where} cannot be used",
        cause=cause,
        fix="Restore it from a backup, or restore a version of the table before it",
    )
