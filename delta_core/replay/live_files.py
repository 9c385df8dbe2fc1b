"""The live files of a version as columns.

Chunks are shared between versions; what a later commit removes is a bit in a mask, and what it adds is
a small new chunk, so a refresh copies neither paths nor statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.errors import ConfigurationError
from delta_core.replay.file_chunk import FileChunk, MemoryChunk, map_values, plain_map
from delta_core.replay.tail import FileKey, Tail, live_batch
from delta_core.storage.uri import canonical_log_path, encode_data_path

BoolMask = npt.NDArray[np.bool_]

# Chunks of commits grow together up to this size, so that many refreshes do not make many chunks.
_MERGE_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """A chunk and which of its rows are dead (None: none is)."""

    chunk: FileChunk
    dead: BoolMask | None = None

    @property
    def num_live(self) -> int:
        return self.chunk.num_rows - (0 if self.dead is None else int(self.dead.sum()))

    def live(self, values: pa.Array) -> pa.Array:
        if self.dead is None:
            return values
        # By position: maps with dictionary-encoded leaves can be taken but not filtered.
        return values.take(pa.array(np.flatnonzero(~self.dead)))


class LiveFiles:
    """An immutable set of live files, ordered, with columns of LIVE_FILE_SCHEMA."""

    def __init__(self, slots: Iterable[_Slot] = ()) -> None:
        self._slots = tuple(slot for slot in slots if slot.num_live)

    @classmethod
    def of_chunks(cls, chunks: Iterable[FileChunk]) -> LiveFiles:
        """All rows of some chunks."""
        return cls(_Slot(chunk=chunk) for chunk in chunks)

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> LiveFiles:
        """All rows of a batch of LIVE_FILE_SCHEMA."""
        return cls([_Slot(chunk=MemoryChunk(batch))])

    def __len__(self) -> int:
        return self.num_files

    @cached_property
    def num_files(self) -> int:
        """How many files."""
        return sum(slot.num_live for slot in self._slots)

    @cached_property
    def total_bytes(self) -> int:
        """Their sizes, summed."""
        sums = (pc.sum(slot.live(slot.chunk.column("size_bytes"))).as_py() for slot in self._slots)
        return sum(value or 0 for value in sums)

    @cached_property
    def has_deletion_vectors(self) -> bool:
        """Whether a file has a deletion vector."""
        return any(
            slot.num_live > slot.live(slot.chunk.column("deletion_vector")).null_count
            for slot in self._slots
            if slot.chunk.maybe_has_deletion_vectors()
        )

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The files chunk by chunk, in a fixed order.

        Args:
            columns: names in LIVE_FILE_SCHEMA; None is all. Only these are decoded.

        Raises:
            CorruptLogError: a checkpoint's column cannot be decoded.
        """
        schema = live_schema(columns)
        for slot in self._slots:
            arrays = []
            for item in schema:
                values = slot.live(slot.chunk.column(item.name))
                arrays.append(plain_map(values) if pa.types.is_map(item.type) else values)
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def to_table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The files as one table, a chunk for each batch."""
        return pa.Table.from_batches(list(self.batches(columns)), schema=live_schema(columns))

    def partition_column(self, name: str) -> pa.ChunkedArray:
        """The serialised values of one partition column, null where the file has none.

        Much cheaper than looking a key up in the `partition_values` map. Strings, in the order of
        `batches`; `name` is the physical name.
        """
        chunks = []
        for slot in self._slots:
            values = slot.live(map_values(slot.chunk.column("partition_values"), name))
            chunks.append(values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values)
        return pa.chunked_array(chunks, pa.string())

    @property
    def share_of_chunks(self) -> float:
        """How many of the rows in the chunks are in the set; 1 when all are."""
        return self.num_files / max(1, sum(slot.chunk.num_rows for slot in self._slots))

    def derived(self, make: Callable[[FileChunk], Sequence[pa.Array]]) -> list[pa.Array]:
        """Columns worked out chunk by chunk, for the files of the set, in the order of `batches`.

        Args:
            make: gives arrays as long as a chunk; what it keeps in the chunk's memo is there for later
                versions, too.
        """
        parts = [[slot.live(values) for values in make(slot.chunk)] for slot in self._slots]
        return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]

    def select(self, rows: pa.BooleanArray | pa.ChunkedArray | npt.NDArray[np.generic]) -> LiveFiles:
        """Some of the files, in the same order.

        Args:
            rows: a mask as long as the set (null counts as False), or row numbers.

        Raises:
            ConfigurationError: the mask is of another length.
        """
        if isinstance(rows, (pa.Array, pa.ChunkedArray)):
            chosen = (
                np.asarray(pc.fill_null(rows, False)) if pa.types.is_boolean(rows.type) else np.asarray(rows)
            )
        else:
            chosen = np.asarray(rows)
        if chosen.dtype != np.bool_:
            mask = np.zeros(self.num_files, dtype=np.bool_)
            mask[chosen] = True
        else:
            mask = chosen
        if len(mask) != self.num_files:
            raise ConfigurationError(
                f"The mask has {len(mask)} rows, there are {self.num_files} files.",
                fix="Make the mask from the same set of files.",
            )
        slots, start = [], 0
        for slot in self._slots:
            part = mask[start : start + slot.num_live]
            start += slot.num_live
            if part.all():
                slots.append(slot)
                continue
            dead = np.ones(slot.chunk.num_rows, dtype=np.bool_)
            alive = np.arange(slot.chunk.num_rows) if slot.dead is None else np.flatnonzero(~slot.dead)
            dead[alive[part]] = False
            slots.append(replace(slot, dead=dead))
        return LiveFiles(slots)

    def apply(self, tail: Tail) -> LiveFiles:
        """The set after some more commits. Hashes only the paths that they touch."""
        keys = {*tail.adds, *tail.removes}
        if not keys:
            return self
        slots, matched = _without(self._slots, keys, path_spellings(keys))
        unmatched = {key for key in tail.removes if key not in matched}
        if unmatched:
            # Nobody has to escape a path the way we would: look at every path that has an escape.
            slots, _ = _without(slots, unmatched, None)
        if tail.adds:
            batch = live_batch(tail.adds.values())
            last = slots[-1] if slots else None
            if last is not None and isinstance(last.chunk, MemoryChunk) and last.chunk.num_rows < _MERGE_ROWS:
                slots.pop()
                kept = list(LiveFiles([last]).batches())
                batch = pa.concat_batches([*kept, batch])
            slots.append(_Slot(chunk=MemoryChunk(batch)))
        return LiveFiles(slots)


def live_schema(columns: Sequence[str] | None) -> pa.Schema:
    """LIVE_FILE_SCHEMA, or the named part of it in the named order."""
    if columns is None:
        return LIVE_FILE_SCHEMA
    return pa.schema([LIVE_FILE_SCHEMA.field(name) for name in columns])


def path_spellings(keys: Iterable[FileKey]) -> pa.Array:
    """Every way in which writers spell the paths of some files, for a first, inexact match."""
    spellings: set[str] = set()
    for path, _ in keys:
        encoded = encode_data_path(path)
        spellings.update((path, encoded, quote(path, safe="/=")))
        if path.startswith("/"):
            spellings.update(f"{prefix}{text}" for prefix in ("file:", "file://") for text in (path, encoded))
    return pa.array(list(spellings), pa.string())


def matching_rows(
    paths: pa.Array, vectors: pa.Array | None, keys: set[FileKey], spellings: pa.Array | None
) -> tuple[npt.NDArray[np.int64], set[FileKey]]:
    """The rows whose logical file is one of `keys`, and the keys that were found.

    Rows are picked by spelling (None: those with an escape) and then compared exactly.
    """
    candidates = pc.match_substring(paths, "%") if spellings is None else pc.is_in(paths, value_set=spellings)
    rows = np.flatnonzero(np.asarray(candidates))
    if not len(rows):
        return rows, set()
    taken = pa.array(rows)
    row_vectors = [None] * len(rows) if vectors is None else vectors.take(taken).to_pylist()
    found = [
        (canonical_log_path(path), _unique_id(vector))
        for path, vector in zip(paths.take(taken).to_pylist(), row_vectors, strict=True)
    ]
    exact = np.fromiter((key in keys for key in found), dtype=np.bool_, count=len(found))
    return rows[exact], keys.intersection(found)


def _unique_id(vector: dict[str, object] | None) -> str:
    if vector is None:
        return ""
    base = f"{vector['storage_type']}{vector['path_or_inline_dv']}"
    return base if vector["offset"] is None else f"{base}@{vector['offset']}"


def _without(
    slots: Iterable[_Slot], keys: set[FileKey], spellings: pa.Array | None
) -> tuple[list[_Slot], set[FileKey]]:
    """The slots with the rows of some files dead, and which files were found."""
    changed: list[_Slot] = []
    matched: set[FileKey] = set()
    for slot in slots:
        chunk = slot.chunk
        vectors = chunk.column("deletion_vector") if chunk.maybe_has_deletion_vectors() else None
        rows, found = matching_rows(chunk.column("path"), vectors, keys, spellings)
        matched |= found
        if len(rows):
            dead = np.zeros(chunk.num_rows, dtype=np.bool_) if slot.dead is None else slot.dead.copy()
            dead[rows] = True
            slot = replace(slot, dead=dead)
        changed.append(slot)
    return changed, matched
