"""The deletion vectors of one commit, in a file.

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
"""A file of vectors is closed before it is larger, but for its first vector. `offset` reaches to 2 GiB."""

_PREFIX_CHARACTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDeletionVectors:
    """Vectors that are durable, and that no commit names yet.

    Attributes:
        descriptors: one for each vector, in their order.
        paths: the files that were made (store paths: decoded, relative to the root); they belong to whoever
            commits, and may be deleted only when it is certain that no commit names them.
        size_bytes: of these files.
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
    """Write the vectors of one commit into one file, however small they are.

    PROTOCOL.md allows small ones in the log, and readers read them; but delta-spark's VACUUM fails on every
    table that has one, live or removed.

    A file has a new random name in the table's root, or in a directory with a random name of its own when
    the table asks for random prefixes (`delta.randomizeFilePrefixes`); it appears whole or not at all. There
    are several only when one would be larger than a descriptor can say. Vectors are taken one by one, so one
    is in memory at a time. If anything fails, nothing stays in the store. Requests: one written object, none
    without vectors.

    Whether the table may have vectors at all is the caller's to ask: the feature must be in the protocol and
    `delta.enableDeletionVectors` be true (PROTOCOL.md, "Deletion Vectors").

    Args:
        store: the table's store.
        vectors: of each the positions of all deleted rows, old ones included; see `row_positions`.
        properties: the table's; None asks for nothing.
        inline_max_bytes: a vector of so many serialised bytes or fewer is kept in the log; 0 for none.
        max_file_bytes: see MAX_FILE_BYTES.

    Raises:
        ConfigurationError: a vector has no row or is none, or is too large for a descriptor.
        StorageError: the file could not be written.
    """
    properties = properties or TableProperties({})
    prefix_characters = properties.random_prefix_length if properties.randomize_file_prefixes else 0
    with _Writer(store, prefix_characters=prefix_characters, max_file_bytes=max_file_bytes) as writer:
        for dv in dvs:
            writer.write(dv, inline_max_bytes=inline_max_bytes)
        return writer.finish()


def inline_descriptor(positions: npt.ArrayLike) -> DeletionVectorDescriptor:
    """A vector that is kept in the log, whatever its size.

    Raises:
        ConfigurationError: as `write_deletion_vectors`.
    """
    rows = row_positions(positions)
    return _inline(serialize_deletion_vector(rows), cardinality=_cardinality(rows))


class _DeletionVectorFile:
    """One file being written."""

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
        """The file is durable in the store afterwards."""
        self._stack.close()

    def abort(self, error: BaseException) -> None:
        """Nothing of it appears. Raises what the store makes of the error, if that is another one."""
        self._stack.__exit__(type(error), error, error.__traceback__)

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self.size_bytes += len(data)


class _Writer:
    """The files of one commit, one open at a time."""

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
        if 1 + framed_bytes >= MAX_DELETION_VECTOR_BYTES:
            raise ConfigurationError(
                f"A deletion vector of {cardinality} rows is too large",
                cause=f"It takes {len(data)} bytes; a descriptor allows {MAX_DELETION_VECTOR_BYTES - 1} at most",
                fix="Rewrite the data file instead",
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
        # Listed first: a store that fails while it makes the file durable may have made it.
        self._paths.append(file.path)
        file.close()
        self._closed_bytes += file.size_bytes

    def _delete(self, path: str) -> None:
        try:
            self._store.delete(path)
        except DeltaError as error:
            _log.warning("written file left behind", extra={"path": path, "error": str(error)})


def _cardinality(rows: Positions) -> int:
    if not len(rows):
        raise ConfigurationError(
            "A deletion vector without a row is not written",
            cause="It would say that nothing is deleted, as a file without a vector does",
            fix="Leave the file as it is",
        )
    return len(rows)


def _inline(data: bytes, *, cardinality: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type="i",
        path_or_inline_dv=z85.encode(data),
        size_in_bytes=len(data),
        cardinality=cardinality,
    )
