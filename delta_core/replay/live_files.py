"""The live files of a version as columns.

Versions share chunks. A file that a later commit removes is marked in a mask, and the files that it adds are
a small new chunk. So a refresh copies neither paths nor statistics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.errors import ConfigurationError
from delta_core.replay.checkpoint_chunk import stream_column
from delta_core.replay.distinct_files import PathHashes
from delta_core.replay.file_chunk import FileChunk, MemoryChunk
from delta_core.replay.map_strings import CodedStrings, plain_map
from delta_core.replay.tail import FileKey, Tail, live_batch
from delta_core.schema.arrow_values import ARROW_FALSE, arrow_array
from delta_core.storage.uri import ascii_data_path, canonical_log_path, quoted_path, with_letters

BoolMask = npt.NDArray[np.bool_]

# Chunks of commits are merged up to this size, so that many refreshes do not create many chunks.
_MERGE_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class _Slot:
    """A chunk and a mask of its removed rows; no mask means that all rows are live."""

    chunk: FileChunk
    removed: BoolMask | None = None

    @cached_property
    def num_live(self) -> int:
        return self.chunk.num_rows - (0 if self.removed is None else int(np.count_nonzero(self.removed)))

    def live(self, values: pa.Array) -> pa.Array:
        if self.removed is None:
            return values
        # By position: maps with dictionary-encoded leaves can be taken but not filtered.
        return values.take(pa.array(np.flatnonzero(~self.removed)))


class LiveFiles:
    """An immutable set of live files, ordered, with columns of LIVE_FILE_SCHEMA."""

    def __init__(self, slots: Iterable[_Slot] = (), hashes: PathHashes | None = None) -> None:
        self._slots = tuple(slot for slot in slots if slot.num_live)
        self._hashes = hashes

    @classmethod
    def of_chunks(cls, chunks: Iterable[FileChunk], hashes: PathHashes | None = None) -> LiveFiles:
        """All rows of some chunks. `hashes` are the hashes of all their paths."""
        return cls((_Slot(chunk=chunk) for chunk in chunks), hashes)

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> LiveFiles:
        """All rows of a batch of LIVE_FILE_SCHEMA."""
        return cls([_Slot(chunk=MemoryChunk(batch))])

    def __len__(self) -> int:
        return self.num_files

    @cached_property
    def num_files(self) -> int:
        """The number of files."""
        return sum(slot.num_live for slot in self._slots)

    @cached_property
    def total_bytes(self) -> int:
        """The total size of the files."""
        sums = (pc.sum(slot.live(slot.chunk.column("size_bytes"))).as_py() for slot in self._slots)
        return sum(value or 0 for value in sums)

    @cached_property
    def has_deletion_vectors(self) -> bool:
        """True when a file has a deletion vector."""
        return any(
            slot.num_live > slot.live(slot.chunk.column("deletion_vector")).null_count
            for slot in self._slots
            if slot.chunk.maybe_has_deletion_vectors()
        )

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The files chunk by chunk, in a fixed order.

        Args:
            columns: names of columns of LIVE_FILE_SCHEMA; None means all. Only these columns are decoded.

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

    def stream_batches(self, *, rows: int) -> Iterator[pa.RecordBatch]:
        """The files like `batches`, for a single pass: newly decoded columns are not kept in memory.

        Statistics are decoded piece by piece, other columns one row group at a time.

        Args:
            rows: the maximum number of rows of a batch.

        Raises:
            CorruptLogError: a checkpoint's column cannot be decoded.
        """
        others = [item.name for item in LIVE_FILE_SCHEMA if item.name != "stats"]
        pieces = stream_column(self.chunks, "stats", rows=rows)
        for slot in self._slots:
            columns = {name: slot.chunk.uncached_column(name) for name in others}
            start = 0
            while start < slot.chunk.num_rows:
                _, strings = next(pieces)
                if not len(strings):
                    continue
                piece = {name: values.slice(start, len(strings)) for name, values in columns.items()}
                piece["stats"] = strings
                removed = None if slot.removed is None else slot.removed[start : start + len(strings)]
                start += len(strings)
                arrays = []
                for item in LIVE_FILE_SCHEMA:
                    values = piece[item.name]
                    if removed is not None and removed.any():
                        values = values.take(pa.array(np.flatnonzero(~removed)))
                    arrays.append(plain_map(values) if pa.types.is_map(item.type) else values)
                if len(arrays[0]):
                    yield pa.RecordBatch.from_arrays(arrays, schema=LIVE_FILE_SCHEMA)

    def to_table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The files as one table, a chunk for each batch."""
        return pa.Table.from_batches(list(self.batches(columns)), schema=live_schema(columns))

    def partition_column(self, name: str) -> pa.ChunkedArray:
        """The serialised values of one partition column as strings, in the order of `batches`.

        Null if the file has no value. Much cheaper than a lookup in the map `partition_values`.

        Args:
            name: the physical name of the column.
        """
        return pa.chunked_array([coded.to_array() for coded in self.coded_partition(name)], pa.string())

    def coded_partition(self, name: str) -> list[CodedStrings]:
        """The values of a partition column for each chunk, as codes and distinct strings.

        Later calls for the same column are cheap.
        """
        coded = ((slot, slot.chunk.partition(name)) for slot in self._slots)
        return [values if slot.removed is None else values.take(~slot.removed) for slot, values in coded]

    @property
    def share_of_chunks(self) -> float:
        """The share of the chunks' rows that are in the set; 1 when all are."""
        return self.num_files / max(1, sum(slot.chunk.num_rows for slot in self._slots))

    @property
    def chunks(self) -> list[FileChunk]:
        """The chunks of the set, in the order of `batches`, including rows of files outside the set."""
        return [slot.chunk for slot in self._slots]

    def derived(self, make: Callable[[FileChunk], Sequence[pa.Array]]) -> Iterator[list[pa.Array]]:
        """Columns computed chunk by chunk, for the files of the set, in the order of `batches`.

        Args:
            make: returns arrays with one value for each row of a chunk. Values that it stores in the chunk's
                memo serve later versions, too.
        """
        for slot in self._slots:
            yield [slot.live(values) for values in make(slot.chunk)]

    def select(self, rows: pa.BooleanArray | pa.ChunkedArray | npt.NDArray[np.generic]) -> LiveFiles:
        """The files that `rows` selects, in the same order.

        Args:
            rows: a mask with one value for each file (null counts as False), or row numbers.

        Raises:
            ConfigurationError: the mask does not have one value for each file.
        """
        if isinstance(rows, (pa.Array, pa.ChunkedArray)):
            chosen = (
                np.asarray(pc.fill_null(rows, ARROW_FALSE))
                if pa.types.is_boolean(rows.type)
                else np.asarray(rows)
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
                f"The mask has {len(mask)} rows, but the set has {self.num_files} files.",
                fix="Compute the mask from the same set of files.",
            )
        slots, start = [], 0
        for slot in self._slots:
            part = mask[start : start + slot.num_live]
            start += slot.num_live
            if part.all():
                slots.append(slot)
                continue
            if slot.removed is None:
                removed = ~part
            else:
                removed = slot.removed.copy()
                removed[~slot.removed] = ~part
            slots.append(replace(slot, removed=removed))
        return LiveFiles(slots)

    def rows_among(self, paths: pa.StringArray, dvs: Callable[[], pa.Array]) -> BoolMask | None:
        """A mask of the files that the checkpoint lists, even if removed since; None if it lists none.

        Args:
            paths: the paths of the files, spelled as in the checkpoint.
            dvs: returns the deletion vectors of the files.
        """
        if self._hashes is None or not len(paths):
            return None
        rows = np.flatnonzero(self._hashes.may_contain(paths))
        if not len(rows):
            return None
        keys = _file_keys(paths, dvs(), rows)
        distinct_keys, spellings = set(keys), path_spellings(keys)
        matched: set[FileKey] = set()
        for slot in self._slots:
            chunk = slot.chunk
            chunk_dvs = partial(_deletion_vectors, chunk)
            matched |= matching_rows(chunk.column("path"), chunk_dvs, distinct_keys, spellings)[1]
        if not matched:
            return None
        mask = np.zeros(len(paths), np.bool_)
        mask[rows[[key in matched for key in keys]]] = True
        return mask

    def apply(self, tail: Tail) -> LiveFiles:
        """The set after later commits. Hashes only the paths in their actions."""
        keys = {*tail.adds, *tail.removes}
        if not keys:
            return self
        written = {fields["path"] for fields in (*tail.adds.values(), *tail.removes.values())}
        spellings = path_spellings(keys, written)
        # Usually the paths are new. Then only files that commits added can match, and none of the checkpoint.
        in_checkpoint = self._hashes is None or self._hashes.may_contain_any(spellings)
        slots, matched = _without(self._slots, keys, spellings, in_checkpoint=in_checkpoint)
        # A writer may escape paths in a way that `path_spellings` does not know.
        unmatched = {key for key in keys - matched if key in tail.removes or may_be_escaped(key)}
        if unmatched:
            slots, _ = _without(slots, unmatched, None)
        if tail.adds:
            batch = live_batch(tail.adds.values())
            last = slots[-1] if slots else None
            if last is not None and isinstance(last.chunk, MemoryChunk) and last.chunk.num_rows < _MERGE_ROWS:
                slots.pop()
                batch = pa.concat_batches([*LiveFiles([last]).batches(), batch])
            slots.append(_Slot(chunk=MemoryChunk(batch)))
        return LiveFiles(slots, self._hashes)


def live_schema(columns: Sequence[str] | None) -> pa.Schema:
    """The fields of LIVE_FILE_SCHEMA that `columns` names, in that order; all fields when None."""
    if columns is None:
        return LIVE_FILE_SCHEMA
    return pa.schema([LIVE_FILE_SCHEMA.field(name) for name in columns])


def path_spellings(keys: Iterable[FileKey], written: Iterable[str] = ()) -> pa.Array:
    """The spellings with which known writers record the paths of files, for a first, inexact match.

    Args:
        keys: the files.
        written: additional spellings, as in the actions.
    """
    spellings: set[str] = set(written)
    for path, _ in keys:
        if _PLAIN.fullmatch(path) and not path.startswith("/"):
            spellings.add(path)
            continue
        encoded = quoted_path(path)
        # Java's URIs escape only ASCII characters.
        ascii_only = _ASCII.sub(lambda part: quoted_path(part[0]), path)
        own = ascii_data_path(path)
        spellings.update((path, own, with_letters(own), encoded, ascii_only, quote(path, safe="/=")))
        spellings.add(encoded.replace("~", "%7E"))  # the spelling of deltalake
        if path.startswith("/"):
            spellings.update(
                f"{prefix}{form}" for prefix in ("file:", "file://") for form in (path, encoded, ascii_only)
            )
    return arrow_array(list(spellings), pa.string())


def may_be_escaped(key: FileKey) -> bool:
    """True when the file's path has characters that a writer may escape."""
    return _PLAIN.fullmatch(key[0]) is None


def matching_rows(
    paths: pa.Array,
    dvs: Callable[[], pa.Array | None],
    keys: set[FileKey],
    spellings: pa.Array | None,
) -> tuple[npt.NDArray[np.int64], set[FileKey]]:
    """The rows whose logical file is one of `keys`, and the matched keys.

    Candidate rows are selected by spelling, or by other means if `spellings` is omitted, and then compared
    exactly. `dvs` is called only if there are candidates; it returns None if no row has a deletion vector.
    """
    rows = _candidates(paths, spellings, keys)
    if not len(rows):
        return rows, set()
    candidates = _file_keys(paths, dvs(), rows)
    exact = np.fromiter((key in keys for key in candidates), dtype=np.bool_, count=len(candidates))
    return rows[exact], keys.intersection(candidates)


# Up to this number, comparing each row with each spelling is cheaper than hashing each row.
_COMPARED_SPELLINGS = 2

# The end of a file name usually has nothing to escape, and distinguishes the file from others.
_COMPARED_ENDS = 8
_SELECTIVE_END = 12
# Matches only at the start of a run of such characters, so that the search does not try each of them.
_PLAIN_END = re.compile(r"(?<![A-Za-z0-9_.-])[A-Za-z0-9_.-]*$")
_PLAIN = re.compile(r"[A-Za-z0-9_.\-=/]*")
_ASCII = re.compile(r"[\x00-\x7f]+")


def _candidates(paths: pa.Array, spellings: pa.Array | None, keys: set[FileKey]) -> npt.NDArray[np.int64]:
    if spellings is None:
        ends = {path[len(_PLAIN_END.sub("", path)) :] for path, _ in keys}
        shortest = min(map(len, ends))
        if shortest >= _SELECTIVE_END and len(ends) <= _COMPARED_ENDS:
            masks = [pc.ends_with(paths, end) for end in ends]
        elif shortest >= _SELECTIVE_END:
            # Decoding every escaped path of a large table would take longer than opening it.
            suffixes = pa.array(sorted({end[-shortest:] for end in ends}), pa.string())
            masks = [pc.is_in(pc.utf8_slice_codeunits(paths, -shortest), value_set=suffixes)]
        else:
            masks = [pc.match_substring(paths, "%")]
    elif len(spellings) <= _COMPARED_SPELLINGS:
        masks = [pc.equal(paths, spelling) for spelling in spellings]
    else:
        masks = [pc.is_in(paths, value_set=spellings)]
    # Most chunks have no candidates, and counting the bits of a mask is cheaper than unpacking them.
    rows = [np.flatnonzero(np.asarray(mask)) for mask in masks if mask.true_count]
    return np.unique(np.concatenate(rows)) if rows else np.empty(0, np.int64)


def _file_keys(paths: pa.Array, dvs: pa.Array | None, rows: npt.NDArray[np.int64]) -> list[FileKey]:
    taken = pa.array(rows)
    row_deletion_vectors = [None] * len(rows) if dvs is None else dvs.take(taken).to_pylist()
    return [
        (canonical_log_path(path), _unique_id(dv))
        for path, dv in zip(paths.take(taken).to_pylist(), row_deletion_vectors, strict=True)
    ]


def _unique_id(dv: dict[str, object] | None) -> str:
    if dv is None:
        return ""
    base = f"{dv['storage_type']}{dv['path_or_inline_dv']}"
    return base if dv["offset"] is None else f"{base}@{dv['offset']}"


def _deletion_vectors(chunk: FileChunk) -> pa.Array | None:
    return chunk.column("deletion_vector") if chunk.maybe_has_deletion_vectors() else None


def _without(
    slots: Iterable[_Slot], keys: set[FileKey], spellings: pa.Array | None, *, in_checkpoint: bool = True
) -> tuple[list[_Slot], set[FileKey]]:
    """The slots with the rows of some files marked as removed, and the matched files."""
    changed: list[_Slot] = []
    matched: set[FileKey] = set()
    for slot in slots:
        chunk = slot.chunk
        if not (in_checkpoint or isinstance(chunk, MemoryChunk)):
            changed.append(slot)
            continue
        rows, in_chunk = matching_rows(
            chunk.column("path"), partial(_deletion_vectors, chunk), keys, spellings
        )
        matched |= in_chunk
        if len(rows):
            removed = (
                np.zeros(chunk.num_rows, dtype=np.bool_) if slot.removed is None else slot.removed.copy()
            )
            removed[rows] = True
            slot = replace(slot, removed=removed)
        changed.append(slot)
    return changed, matched
