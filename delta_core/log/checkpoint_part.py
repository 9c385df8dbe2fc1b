"""One Parquet file of a checkpoint, read leaf by leaf (PROTOCOL.md, "Checkpoints").

Only the requested leaves are read, one row group at a time: reading a nested column by its top-level name
reads all of its leaves, and map leaves that are read as dictionaries cannot be joined across row groups.
Footer statistics show which row groups hold which actions. A row group without statistics may hold all kinds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.errors import CorruptLogError, ObjectNotFoundError
from delta_core.parquet.footer import read_footer
from delta_core.parquet.pages import check_pages
from delta_core.storage.cached import derived_columns
from delta_core.storage.derived_columns import DerivedColumns
from delta_core.storage.log_store import LogStore, ObjectInfo

# The leaf of each kind of action that is never null when the action is present.
KEY_LEAVES = {
    "add": "add.path",
    "remove": "remove.path",
    "metaData": "metaData.id",
    "protocol": "protocol.minReaderVersion",
    "txn": "txn.appId",
    "domainMetadata": "domainMetadata.domain",
    "checkpointMetadata": "checkpointMetadata.version",
    "sidecar": "sidecar.path",
}

# A second leaf that every such action has, to detect an action whose key is missing.
_COMPANIONS = {
    "add": "add.size",
    "remove": "remove.dataChange",
    "metaData": "metaData.schemaString",
    "protocol": "protocol.minWriterVersion",
    "txn": "txn.version",
    "domainMetadata": "domainMetadata.configuration",
    "sidecar": "sidecar.sizeInBytes",
}

BATCH_ROWS = 1 << 16
"""The number of rows that are decoded at a time: one large allocation costs more than the decoding.

Arrow allocates memory in segments of 32 MiB. The paths of twice as many rows leave a third of a segment
unused.
"""

UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, NotImplementedError)
"""The exceptions that decoding a damaged file can raise."""

# Larger files are read in part, although that takes more requests.
_WHOLE_BYTES = 256 << 20

# The length of the footer and the magic number, at the end of the file.
_TRAILER_BYTES = 8

_DIGEST_BYTES = 32
_DIGEST_CHUNK_BYTES = 4 << 20


class CheckpointPart:
    """One Parquet file of a checkpoint.

    Args:
        store: the table's store.
        info: the file.
        hold: keep the file open, so that it stays readable when it is replaced or deleted.
    """

    def __init__(self, store: LogStore, info: ObjectInfo, *, hold: bool = True) -> None:
        self._store = store
        self.path = info.path
        self.size_bytes = info.size_bytes
        source = self._source()
        try:
            self.size_bytes = source.size()
            footer = read_footer(source)
            source.seek(0)
            metadata = pq.read_metadata(source)
            leaves = [leaf.path for leaf in footer.leaves]
            maps = [leaf for leaf in leaves if leaf.startswith("add.partitionValues.")]
            # The file may be replaced while it is open, so the cache key depends on the content.
            cached = derived_columns(store, info.path)
            if cached is not None and (not hold or self.size_bytes > _WHOLE_BYTES):
                footer_bytes = metadata.serialized_size + _TRAILER_BYTES
                cached = cached.of_content(_digest(source, max(0, self.size_bytes - footer_bytes)))
        except (pa.ArrowException, OSError, ValueError) as error:
            source.close()
            raise self._damaged(error) from error
        self._maps = maps
        self._footer = footer
        self.metadata = metadata
        self._derived_columns = cached
        self._held = source if hold else None
        self._checked_pages: set[tuple[int, int]] = set()
        if not hold:
            source.close()
        self.leaves = {leaf: index for index, leaf in enumerate(leaves)}

    def _source(self) -> pa.NativeFile:
        # Most of a checkpoint is read eventually, in many small reads.
        if self.size_bytes <= _WHOLE_BYTES:
            return self._store.open_whole(self.path)
        return self._store.open_input(self.path)

    def _parquet_file(self, source: pa.NativeFile) -> pq.ParquetFile:
        return pq.ParquetFile(
            source, metadata=self.metadata, read_dictionary=self._maps, page_checksum_verification=True
        )

    @contextmanager
    def _opened(self, row_group: int, leaves: Sequence[str]) -> Iterator[pq.ParquetFile]:
        """The file for decoding some leaves of a row group. Several threads may have it open."""
        if self._held is not None:
            self._check_pages(self._held, row_group, leaves)
            yield self._parquet_file(self._held)
            return
        try:
            source = self._source()
        except ObjectNotFoundError as error:
            raise damaged_checkpoint(self.path, "The file was deleted after it was opened.") from error
        with source:
            self._check_pages(source, row_group, leaves)
            yield self._parquet_file(source)

    def _check_pages(self, source: pa.NativeFile, row_group: int, leaves: Sequence[str]) -> None:
        if self._store.remote and self.size_bytes > _WHOLE_BYTES:
            return  # each page header would be a request
        for leaf, index in self.leaves.items():
            requested = any(leaf == name or leaf.startswith(name + ".") for name in leaves)
            if requested and (row_group, index) not in self._checked_pages:
                check_pages(source, self._footer.groups[row_group][index])
                self._checked_pages.add((row_group, index))

    @cached_property
    def derived_columns(self) -> DerivedColumns | None:
        """The cache of columns derived from the file, shared between processes; None without a cache.

        Entries belong to the content of the open file: the digest covers the whole file if it is in memory,
        else the footer. The first call reads those bytes; no request.
        """
        if self._derived_columns is None or self._held is None or self.size_bytes > _WHOLE_BYTES:
            return self._derived_columns
        return self._derived_columns.of_content(_digest(self._held, 0))

    def has(self, column: str) -> bool:
        """True when the file has the leaf, or leaves below it."""
        return bool(self._leaves_of(column))

    def present_rows(self, row_group: int, leaf: str) -> int | None:
        """The number of rows of the row group with a value in the leaf; None without footer statistics."""
        index = self.leaves.get(leaf)
        if index is None:
            return 0
        nulls = self._footer.groups[row_group][index].nulls
        return None if nulls is None else self._footer.group_rows[row_group] - nulls

    def row_groups_with(self, kind: str) -> list[int]:
        """The row groups that may hold actions with the JSON key `kind`.

        Raises:
            CorruptLogError: by the footer, such actions have other fields but not their key.
        """
        leaf, companion = KEY_LEAVES[kind], _COMPANIONS.get(kind)
        groups = []
        for group in range(len(self._footer.group_rows)):
            if self.present_rows(group, leaf) != 0:
                groups.append(group)
            elif companion is not None and self.present_rows(group, companion):
                raise damaged_checkpoint(
                    self.path, f"It has {kind!r} actions with {companion!r} and without {leaf!r}."
                )
            elif leaf not in self.leaves and any(
                self.present_rows(group, other) != 0 for other in self._leaves_of(kind)
            ):
                raise damaged_checkpoint(self.path, f"It has {kind!r} actions without {leaf!r}.")
        return groups

    def _leaves_of(self, column: str) -> list[str]:
        return [leaf for leaf in self.leaves if leaf == column or leaf.startswith(column + ".")]

    def read(self, row_group: int, kind: str, columns: Sequence[str]) -> list[pa.StructArray]:
        """The fields `columns` of the actions of one kind in one row group; rows of other kinds are null.

        The rows are in runs of BATCH_ROWS, the last one shorter.

        Raises:
            CorruptLogError: the file cannot be decoded.
        """
        runs = list(self.stream(row_group, kind, columns))
        if all(len(part) == BATCH_ROWS for part in runs[:-1]) and all(len(p) <= BATCH_ROWS for p in runs):
            return runs
        # Arrow may end a batch where the dictionary of a column ends. The runs of different columns would
        # then have different lengths.
        try:
            leaves = _leaves(kind, columns)
            with self._opened(row_group, leaves) as file:
                whole = file.read_row_group(row_group, columns=leaves, use_threads=False)
            column = whole.column(kind)
            rows = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
        except UNREADABLE as error:
            raise self._damaged(error) from error
        return [rows.slice(start, BATCH_ROWS) for start in range(0, len(rows), BATCH_ROWS)]

    def stream(
        self, row_group: int, kind: str, columns: Sequence[str], *, rows: int = BATCH_ROWS
    ) -> Iterator[pa.StructArray]:
        """Like `read`, but lazily, in runs of at most `rows` rows. Several streams may be active at once.

        Raises:
            CorruptLogError: the file cannot be decoded.
        """
        try:
            leaves = _leaves(kind, columns)
            with self._opened(row_group, leaves) as file:
                for batch in file.iter_batches(
                    rows, row_groups=[row_group], columns=leaves, use_threads=False
                ):
                    yield batch.column(kind)
        except UNREADABLE as error:
            raise self._damaged(error) from error

    def decode_all(self) -> None:
        """Decode every column once, in bounded memory, to prove that the file is readable.

        Raises:
            CorruptLogError: a column cannot be decoded.
        """
        kinds = sorted({leaf.partition(".")[0] for leaf in self.leaves})
        try:
            for group in range(self.metadata.num_row_groups):
                with self._opened(group, kinds) as file:
                    for _ in file.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=False):
                        pass
        except UNREADABLE as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> CorruptLogError:
        return damaged_checkpoint(self.path, f"Decoding failed: {str(error).split(chr(10))[0].rstrip('.')}.")


def _digest(source: pa.NativeFile, start: int) -> bytes:
    """The digest of a file's bytes from an offset on. Does not change the file's read position."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for offset in range(start, source.size(), _DIGEST_CHUNK_BYTES):
        digest.update(source.read_at(_DIGEST_CHUNK_BYTES, offset))
    return digest.digest()


def _leaves(kind: str, columns: Sequence[str]) -> list[str]:
    return [f"{kind}.{name}" for name in columns]


def damaged_checkpoint(path: str, cause: str) -> CorruptLogError:
    """The error for a checkpoint that cannot be used. `cause` is a sentence."""
    return CorruptLogError(
        f"The checkpoint {path!r} cannot be read.",
        cause=cause,
        fix="Delete the checkpoint if the commits before it still exist. Otherwise restore it from a backup.",
    )
