"""Writing the deletion vectors of one commit into a file.

See PROTOCOL.md, "Deletion Vector Descriptor Schema" and "Deletion Vector File Storage Format".
"""

from __future__ import annotations

import logging
import secrets
import string
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final
from uuid import uuid4

import numpy.typing as npt

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors import z85
from delta_core.deletion_vectors.encode import row_positions, serialize_deletion_vector
from delta_core.deletion_vectors.format import FILE_VERSION, FRAME_BYTES, MAX_DELETION_VECTOR_BYTES
from delta_core.deletion_vectors.roaring import Positions
from delta_core.errors import ConfigurationError, DeltaError
from delta_core.storage.log_store import LogStore
from delta_core.table_features.table_properties import TableProperties

_log = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 1 << 30
"""The maximum size of a file of deletion vectors. Only a single larger deletion vector may exceed it.

`offset` allows up to 2 GiB.
"""

_PREFIX_CHARACTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDeletionVectors:
    """Deletion vectors that are durable, and to which no commit refers yet.

    Attributes:
        descriptors: one for each deletion vector, in order.
        paths: the created files as store paths (decoded, relative to the root). The caller that commits is
            responsible for them. They may be deleted only if certainly no commit refers to them.
        size_bytes: the total size of these files.
    """

    descriptors: tuple[DeletionVectorDescriptor, ...] = ()
    paths: tuple[str, ...] = ()
    size_bytes: int = 0


def write_deletion_vectors(
    store: LogStore,
    dvs: Iterable[npt.ArrayLike],
    *,
    properties: TableProperties | None = None,
    inline_max_bytes: int = 0,
    max_file_bytes: int = MAX_FILE_BYTES,
) -> WrittenDeletionVectors:
    """Write the deletion vectors of one commit into one file, independent of their sizes.

    PROTOCOL.md allows small deletion vectors in the log, and readers support them. But delta-spark's VACUUM
    fails on every table that has one in its log, live or removed.

    The file gets a new random name in the table's root, or in a directory with a random name if the table
    asks for random prefixes (`delta.randomizeFilePrefixes`). It appears complete or not at all. Several files
    are written only if one file would exceed `max_file_bytes`. One deletion vector is in memory at a time. If
    the function fails, it leaves no file in the store. Requests: one written object, or none if `dvs` is
    empty.

    The caller must check that the table allows deletion vectors: the feature must be in the protocol and
    `delta.enableDeletionVectors` must be true (PROTOCOL.md, "Deletion Vectors").

    Args:
        store: the table's store.
        dvs: for each deletion vector the positions of all deleted rows, including previously deleted rows;
            see `row_positions`.
        properties: the table's properties; None takes the defaults.
        inline_max_bytes: deletion vectors of up to this serialised size are stored in the log; 0 stores none.
        max_file_bytes: see MAX_FILE_BYTES.

    Raises:
        ConfigurationError: a deletion vector is empty, too large for a descriptor, or has invalid positions.
        StorageError: the file could not be written.
    """
    properties = properties or TableProperties({})
    prefix_characters = properties.random_prefix_length if properties.randomize_file_prefixes else 0
    with _Writer(store, prefix_characters=prefix_characters, max_file_bytes=max_file_bytes) as writer:
        for dv in dvs:
            writer.write(dv, inline_max_bytes=inline_max_bytes)
        return writer.finish()


class _DeletionVectorFile:
    """A file of deletion vectors that is being written."""

    def __init__(self, store: LogStore, prefix_characters: int) -> None:
        identity = uuid4()
        prefix = "".join(secrets.choice(_PREFIX_CHARACTERS) for _ in range(prefix_characters))
        self.path = "/".join(part for part in (prefix, f"deletion_vector_{identity}.bin") if part)
        self.size_bytes = 0
        self._name = prefix + z85.encode(identity.bytes)
        self._stack = ExitStack()
        self._sink = self._stack.enter_context(store.open_output(self.path))

    def append(self, data: bytes, *, cardinality: int) -> DeletionVectorDescriptor:
        if not self.size_bytes:
            self._put(bytes([FILE_VERSION]))
        offset = self.size_bytes
        self._put(len(data).to_bytes(4, "big"))
        self._put(data)
        self._put(zlib.crc32(data).to_bytes(4, "big"))
        return DeletionVectorDescriptor(
            storage_type="u",
            path_or_inline_dv=self._name,
            offset=offset,
            size_in_bytes=len(data),
            cardinality=cardinality,
        )

    def close(self) -> None:
        """Finish the file. Afterwards it is durable in the store."""
        self._stack.close()

    def abort(self, error: BaseException) -> None:
        """Discard the file. Raises an exception of the store if aborting fails."""
        self._stack.__exit__(type(error), error, error.__traceback__)

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self.size_bytes += len(data)


class _Writer:
    """A writer of the files of one commit, with one open file at a time."""

    def __init__(self, store: LogStore, *, prefix_characters: int, max_file_bytes: int) -> None:
        self._store = store
        self._prefix_characters = prefix_characters
        self._max_file_bytes = min(max_file_bytes, MAX_DELETION_VECTOR_BYTES - 1)
        self._open: _DeletionVectorFile | None = None
        self._paths: list[str] = []
        self._closed_bytes = 0
        self._descriptors: list[DeletionVectorDescriptor] = []

    def __enter__(self) -> _Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        try:
            if self._open is not None:
                self._open.abort(error)
        finally:
            for path in self._paths:
                self._delete(path)

    def write(self, dv: npt.ArrayLike, *, inline_max_bytes: int) -> None:
        rows = row_positions(dv)
        cardinality = _cardinality(rows)
        data = serialize_deletion_vector(rows)
        if len(data) <= inline_max_bytes:
            self._descriptors.append(_inline(data, cardinality=cardinality))
            return
        framed_bytes = len(data) + FRAME_BYTES
        # A file with only this deletion vector, its frame and the version byte must be below the limit.
        most_bytes = MAX_DELETION_VECTOR_BYTES - 2 - FRAME_BYTES
        if len(data) > most_bytes:
            raise ConfigurationError(
                f"A deletion vector of {cardinality} rows is too large.",
                cause=f"It has {len(data)} bytes, and the limit is {most_bytes}.",
                fix="Rewrite the data file instead.",
            )
        if self._open is not None and self._open.size_bytes + framed_bytes > self._max_file_bytes:
            self._close(self._open)
        if self._open is None:
            self._open = _DeletionVectorFile(self._store, self._prefix_characters)
        self._descriptors.append(self._open.append(data, cardinality=cardinality))

    def finish(self) -> WrittenDeletionVectors:
        if self._open is not None:
            self._close(self._open)
        return WrittenDeletionVectors(
            descriptors=tuple(self._descriptors), paths=tuple(self._paths), size_bytes=self._closed_bytes
        )

    def _close(self, file: _DeletionVectorFile) -> None:
        self._open = None
        # Recorded first: if closing fails, the file may exist nevertheless.
        self._paths.append(file.path)
        file.close()
        self._closed_bytes += file.size_bytes

    def _delete(self, path: str) -> None:
        try:
            self._store.delete(path)
        except DeltaError as error:
            _log.warning("deletion vector file not deleted", extra={"path": path, "error": str(error)})


def _cardinality(rows: Positions) -> int:
    if not len(rows):
        raise ConfigurationError(
            "A deletion vector without rows cannot be written.",
            cause="A file without deleted rows has no deletion vector.",
            fix="Do not change the file.",
        )
    return len(rows)


def _inline(data: bytes, *, cardinality: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type="i",
        path_or_inline_dv=z85.encode(data),
        size_in_bytes=len(data),
        cardinality=cardinality,
    )
