"""One Parquet file of a checkpoint, read leaf by leaf (PROTOCOL.md, "Checkpoints").

Only the leaves that are asked for are read, one row group at a time: reading a nested column by its
top-level name costs all of its leaves, and dictionary-read map leaves cannot be joined across row
groups. Footer statistics tell which row groups hold which actions; where they are missing, all do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.errors import CorruptLogError, ObjectNotFoundError
from delta_core.storage.cached import derived_columns
from delta_core.storage.derived_columns import DerivedColumns
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.storage.parquet_footer import read_footer
from delta_core.storage.parquet_pages import check_pages

# The leaf that is never null where an action of the kind is present.
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

# One that every such action has, too, so that an action that lost its key is noticed.
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
"""Rows are decoded so many at a time: one large allocation costs more than the decoding.

Arrow's memory comes in segments of 32 MiB, of which twice as many rows' paths leave a third unused.
"""

UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, NotImplementedError)
"""What decoding a damaged file raises."""

# Larger ones are read in part, though that takes more requests.
_WHOLE_BYTES = 256 << 20

# The footer's length and the magic number.
_TRAILER_BYTES = 8

_DIGEST_BYTES = 32
_DIGESTED_AT_ONCE = 4 << 20


class CheckpointPart:
    """One Parquet file of a checkpoint.

    Args:
        store: the table's store.
        info: the file.
        hold: keep it open, so that it stays readable when it is replaced or deleted.
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
            # What a name means may change while the file is open.
            kept = derived_columns(store, info.path)
            if kept is not None and (not hold or self.size_bytes > _WHOLE_BYTES):
                footer_bytes = metadata.serialized_size + _TRAILER_BYTES
                kept = kept.of_content(_digest(source, max(0, self.size_bytes - footer_bytes)))
        except (pa.ArrowException, OSError, ValueError) as error:
            source.close()
            raise self._damaged(error) from error
        self._maps = maps
        self._footer = footer
        self.metadata = metadata
        self._kept = kept
        self._held = source if hold else None
        self._walked: set[tuple[int, int]] = set()
        if not hold:
            source.close()
        self.leaves = {leaf: index for index, leaf in enumerate(leaves)}

    def _source(self) -> pa.NativeFile:
        # Most of a checkpoint is read sooner or later, in many small reads.
        if self.size_bytes <= _WHOLE_BYTES:
            return self._store.open_whole(self.path)
        return self._store.open_input(self.path)

    def _parquet_file(self, source: pa.NativeFile) -> pq.ParquetFile:
        return pq.ParquetFile(
            source, metadata=self.metadata, read_dictionary=self._maps, page_checksum_verification=True
        )

    @contextmanager
    def _opened(self, row_group: int, leaves: Sequence[str]) -> Iterator[pq.ParquetFile]:
        """The file for one reader, among others, that will decode some leaves of a row group."""
        if self._held is not None:
            self._check_pages(self._held, row_group, leaves)
            yield self._parquet_file(self._held)
            return
        try:
            source = self._source()
        except ObjectNotFoundError as error:
            raise damaged_checkpoint(self.path, "it was deleted after it was opened") from error
        with source:
            self._check_pages(source, row_group, leaves)
            yield self._parquet_file(source)

    def _check_pages(self, source: pa.NativeFile, row_group: int, leaves: Sequence[str]) -> None:
        if self._store.remote and self.size_bytes > _WHOLE_BYTES:
            return  # each header would be a request
        for leaf, index in self.leaves.items():
            wanted = any(leaf == one or leaf.startswith(one + ".") for one in leaves)
            if wanted and (row_group, index) not in self._walked:
                check_pages(source, self._footer.groups[row_group][index])
                self._walked.add((row_group, index))

    @cached_property
    def derived_columns(self) -> DerivedColumns | None:
        """Where what is worked out from the file is kept for other processes, if anywhere.

        A batch is kept for, and taken for, the bytes that are open: all of them where they are in memory,
        else those of the footer. The first call reads them; no request.
        """
        if self._kept is None or self._held is None or self.size_bytes > _WHOLE_BYTES:
            return self._kept
        return self._kept.of_content(_digest(self._held, 0))

    def has(self, column: str) -> bool:
        """True when the file has the leaf, or leaves below it."""
        return bool(self._of(column))

    def present_rows(self, row_group: int, leaf: str) -> int | None:
        """How many rows of the row group have a value in the leaf; None when the footer does not say."""
        index = self.leaves.get(leaf)
        if index is None:
            return 0
        nulls = self._footer.groups[row_group][index].nulls
        return None if nulls is None else self._footer.group_rows[row_group] - nulls

    def row_groups_with(self, kind: str) -> list[int]:
        """The row groups that may hold actions of a kind.

        Raises:
            CorruptLogError: the footer counts other fields of such actions and not their key.
        """
        leaf, companion = KEY_LEAVES[kind], _COMPANIONS.get(kind)
        found = []
        for group in range(len(self._footer.group_rows)):
            if self.present_rows(group, leaf) != 0:
                found.append(group)
            elif companion is not None and self.present_rows(group, companion):
                raise damaged_checkpoint(self.path, f"{kind!r} actions have a {companion!r} and no {leaf!r}")
            elif leaf not in self.leaves and any(
                self.present_rows(group, one) != 0 for one in self._of(kind)
            ):
                raise damaged_checkpoint(self.path, f"{kind!r} actions have no {leaf!r}")
        return found

    def _of(self, column: str) -> list[str]:
        return [leaf for leaf in self.leaves if leaf == column or leaf.startswith(column + ".")]

    def read(self, row_group: int, kind: str, columns: Sequence[str]) -> list[pa.StructArray]:
        """The named fields of one kind of action in one row group; rows of other kinds are null.

        In runs of BATCH_ROWS, the last one shorter.

        Raises:
            CorruptLogError: the file cannot be decoded.
        """
        found = list(self.stream(row_group, kind, columns))
        if all(len(part) == BATCH_ROWS for part in found[:-1]) and all(len(p) <= BATCH_ROWS for p in found):
            return found
        # Where a page's dictionary ends Arrow may end a batch, too, and other columns then do not fit it.
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
        """As `read`, for who may stop early, in runs of so many rows or less. Several may be under way.

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
        """Decode every column once, in bounded memory: before what it replaces is deleted.

        Raises:
            CorruptLogError: one cannot be decoded.
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
        return damaged_checkpoint(self.path, str(error).split("\n")[0])


def _digest(source: pa.NativeFile, start: int) -> bytes:
    """Of a file's bytes from a place on. The position that others read at is left alone."""
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for at in range(start, source.size(), _DIGESTED_AT_ONCE):
        found.update(source.read_at(_DIGESTED_AT_ONCE, at))
    return found.digest()


def _leaves(kind: str, columns: Sequence[str]) -> list[str]:
    return [f"{kind}.{name}" for name in columns]


def damaged_checkpoint(path: str, cause: str) -> CorruptLogError:
    """The error of a checkpoint that cannot be used."""
    return CorruptLogError(
        f"The checkpoint {path!r} cannot be read.",
        cause=cause,
        fix="Delete the checkpoint if the commits before it still exist, else restore it from a backup.",
    )
