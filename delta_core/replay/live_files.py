"""The live files of a version as columns.

Chunks are shared between versions; what a later commit removes is a bit in a mask, and what it adds is
a small new chunk, so a refresh copies neither paths nor statistics.
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
from delta_core.replay.distinct_files import PathNumbers
from delta_core.replay.file_chunk import FileChunk, MemoryChunk
from delta_core.replay.map_strings import CodedStrings, plain_map
from delta_core.replay.tail import FileKey, Tail, live_batch
from delta_core.schema.arrow_values import ARROW_FALSE, arrow_array
from delta_core.storage.uri import ascii_data_path, canonical_log_path, quoted_text, with_letters

BoolMask = npt.NDArray[np.bool_]

# Chunks of commits grow together up to this size, so that many refreshes do not make many chunks.
_MERGE_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class _Slot:
    """A chunk and which of its rows are dead (None: none is)."""

    chunk: FileChunk
    dead: BoolMask | None = None

    @cached_property
    def num_live(self) -> int:
        return self.chunk.num_rows - (0 if self.dead is None else int(np.count_nonzero(self.dead)))

    def live(self, values: pa.Array) -> pa.Array:
        if self.dead is None:
            return values
        # By position: maps with dictionary-encoded leaves can be taken but not filtered.
        return values.take(pa.array(np.flatnonzero(~self.dead)))


class LiveFiles:
    """An immutable set of live files, ordered, with columns of LIVE_FILE_SCHEMA."""

    def __init__(self, slots: Iterable[_Slot] = (), numbers: PathNumbers | None = None) -> None:
        self._slots = tuple(slot for slot in slots if slot.num_live)
        self._numbers = numbers

    @classmethod
    def of_chunks(cls, chunks: Iterable[FileChunk], numbers: PathNumbers | None = None) -> LiveFiles:
        """All rows of some chunks; `numbers` are those of all their paths."""
        return cls((_Slot(chunk=chunk) for chunk in chunks), numbers)

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

    def passing(self, *, rows: int) -> Iterator[pa.RecordBatch]:
        """As `batches`, for who looks at each file once: what is decoded for it is not kept.

        Statistics are decoded piece by piece, other columns for a row group.

        Args:
            rows: how long a batch may be.

        Raises:
            CorruptLogError: a checkpoint's column cannot be decoded.
        """
        others = [item.name for item in LIVE_FILE_SCHEMA if item.name != "stats"]
        pieces = stream_column(self.chunks, "stats", rows=rows)
        for slot in self._slots:
            columns = {name: slot.chunk.passing(name) for name in others}
            start = 0
            while start < slot.chunk.num_rows:
                _, strings = next(pieces)
                if not len(strings):
                    continue
                piece = {name: values.slice(start, len(strings)) for name, values in columns.items()}
                piece["stats"] = strings
                dead = None if slot.dead is None else slot.dead[start : start + len(strings)]
                start += len(strings)
                arrays = []
                for item in LIVE_FILE_SCHEMA:
                    values = piece[item.name]
                    if dead is not None and dead.any():
                        values = values.take(pa.array(np.flatnonzero(~dead)))
                    arrays.append(plain_map(values) if pa.types.is_map(item.type) else values)
                if len(arrays[0]):
                    yield pa.RecordBatch.from_arrays(arrays, schema=LIVE_FILE_SCHEMA)

    def to_table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The files as one table, a chunk for each batch."""
        return pa.Table.from_batches(list(self.batches(columns)), schema=live_schema(columns))

    def partition_column(self, name: str) -> pa.ChunkedArray:
        """The serialised values of one partition column, null where the file has none.

        Much cheaper than looking a key up in the `partition_values` map. Strings, in the order of
        `batches`; `name` is the physical name.
        """
        return pa.chunked_array([coded.to_array() for coded in self.coded_partition(name)], pa.string())

    def coded_partition(self, name: str) -> list[CodedStrings]:
        """As `partition_column`, with distinct texts apart, for each chunk. Costs next to nothing again."""
        coded = ((slot, slot.chunk.partition(name)) for slot in self._slots)
        return [values if slot.dead is None else values.take(~slot.dead) for slot, values in coded]

    @property
    def share_of_chunks(self) -> float:
        """How many of the rows in the chunks are in the set; 1 when all are."""
        return self.num_files / max(1, sum(slot.chunk.num_rows for slot in self._slots))

    @property
    def chunks(self) -> list[FileChunk]:
        """What the set is made of, in the order of `batches`; files that are not of the set included."""
        return [slot.chunk for slot in self._slots]

    def derived(self, make: Callable[[FileChunk], Sequence[pa.Array]]) -> Iterator[list[pa.Array]]:
        """Columns worked out chunk by chunk, for the files of the set, in the order of `batches`.

        Args:
            make: gives arrays as long as a chunk; what it keeps in the chunk's memo is there for later
                versions, too.
        """
        for slot in self._slots:
            yield [slot.live(values) for values in make(slot.chunk)]

    def select(self, rows: pa.BooleanArray | pa.ChunkedArray | npt.NDArray[np.generic]) -> LiveFiles:
        """Some of the files, in the same order.

        Args:
            rows: a mask as long as the set (null counts as False), or row numbers.

        Raises:
            ConfigurationError: the mask is of another length.
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
            if slot.dead is None:
                dead = ~part
            else:
                dead = slot.dead.copy()
                dead[~slot.dead] = ~part
            slots.append(replace(slot, dead=dead))
        return LiveFiles(slots)

    def rows_among(self, paths: pa.StringArray, dvs: Callable[[], pa.Array]) -> BoolMask | None:
        """Which rows are files that the checkpoint brought, removed since or not; None when none is.

        Args:
            paths: as the checkpoint spells them.
            vectors: gives their deletion vectors.
        """
        if self._numbers is None or not len(paths):
            return None
        rows = np.flatnonzero(self._numbers.among(paths))
        if not len(rows):
            return None
        keys = _file_keys(paths, dvs(), rows)
        wanted, spellings = set(keys), path_spellings(keys)
        found: set[FileKey] = set()
        for slot in self._slots:
            chunk = slot.chunk
            of_chunk = partial(_deletion_vectors, chunk)
            found |= matching_rows(chunk.column("path"), of_chunk, wanted, spellings)[1]
        if not found:
            return None
        among = np.zeros(len(paths), np.bool_)
        among[rows[[key in found for key in keys]]] = True
        return among

    def apply(self, tail: Tail) -> LiveFiles:
        """The set after some more commits. Hashes only the paths that they touch."""
        keys = {*tail.adds, *tail.removes}
        if not keys:
            return self
        written = {fields["path"] for fields in (*tail.adds.values(), *tail.removes.values())}
        spellings = path_spellings(keys, written)
        # New files, nearly always: then only those that commits brought can be among them.
        in_checkpoint = self._numbers is None or self._numbers.may_have(spellings)
        slots, matched = _without(self._slots, keys, spellings, in_checkpoint=in_checkpoint)
        # Nobody has to escape a path the way we know.
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
        return LiveFiles(slots, self._numbers)


def live_schema(columns: Sequence[str] | None) -> pa.Schema:
    """LIVE_FILE_SCHEMA, or the named part of it in the named order."""
    if columns is None:
        return LIVE_FILE_SCHEMA
    return pa.schema([LIVE_FILE_SCHEMA.field(name) for name in columns])


def path_spellings(keys: Iterable[FileKey], written: Iterable[str] = ()) -> pa.Array:
    """Every way in which writers are known to spell the paths of some files, for a first, inexact match.

    Args:
        keys: the files.
        written: how the actions at hand spell them.
    """
    spellings: set[str] = set(written)
    for path, _ in keys:
        if _PLAIN.fullmatch(path) and not path.startswith("/"):
            spellings.add(path)
            continue
        encoded = quoted_text(path)
        # Java's URIs escape ASCII alone.
        ascii_only = _ASCII.sub(lambda part: quoted_text(part[0]), path)
        ours = ascii_data_path(path)
        spellings.update((path, ours, with_letters(ours), encoded, ascii_only, quote(path, safe="/=")))
        spellings.add(encoded.replace("~", "%7E"))  # deltalake's
        if path.startswith("/"):
            spellings.update(
                f"{prefix}{text}" for prefix in ("file:", "file://") for text in (path, encoded, ascii_only)
            )
    return arrow_array(list(spellings), pa.string())


def may_be_escaped(key: FileKey) -> bool:
    """Whether a writer has a reason to spell the file's path otherwise than it is."""
    return _PLAIN.fullmatch(key[0]) is None


def matching_rows(
    paths: pa.Array,
    dvs: Callable[[], pa.Array | None],
    keys: set[FileKey],
    spellings: pa.Array | None,
) -> tuple[npt.NDArray[np.int64], set[FileKey]]:
    """The rows whose logical file is one of `keys`, and the keys that were found.

    Rows are picked by spelling (None: whatever it is) and then compared exactly. The deletion
    vectors, None if no row has one, are asked for when a row has been picked.
    """
    rows = _candidates(paths, spellings, keys)
    if not len(rows):
        return rows, set()
    found = _file_keys(paths, dvs(), rows)
    exact = np.fromiter((key in keys for key in found), dtype=np.bool_, count=len(found))
    return rows[exact], keys.intersection(found)


# Up to here comparing each row with each spelling is cheaper than hashing each row.
_COMPARED_SPELLINGS = 2

# The end of a file's name has nothing to escape, nearly always, and tells it from others.
_COMPARED_ENDS = 8
_TELLING_END = 12
# Begins where a run of such letters does, so that it is not tried from each of them.
_PLAIN_END = re.compile(r"(?<![A-Za-z0-9_.-])[A-Za-z0-9_.-]*$")
_PLAIN = re.compile(r"[A-Za-z0-9_.\-=/]*")
_ASCII = re.compile(r"[\x00-\x7f]+")


def _candidates(paths: pa.Array, spellings: pa.Array | None, keys: set[FileKey]) -> npt.NDArray[np.int64]:
    if spellings is None:
        ends = {path[len(_PLAIN_END.sub("", path)) :] for path, _ in keys}
        shortest = min(map(len, ends))
        if shortest >= _TELLING_END and len(ends) <= _COMPARED_ENDS:
            masks = [pc.ends_with(paths, end) for end in ends]
        elif shortest >= _TELLING_END:
            # Decoding every escaped path of a large table would take longer than opening it.
            wanted = pa.array(sorted({end[-shortest:] for end in ends}), pa.string())
            masks = [pc.is_in(pc.utf8_slice_codeunits(paths, -shortest), value_set=wanted)]
        else:
            masks = [pc.match_substring(paths, "%")]
    elif len(spellings) <= _COMPARED_SPELLINGS:
        masks = [pc.equal(paths, spelling) for spelling in spellings]
    else:
        masks = [pc.is_in(paths, value_set=spellings)]
    # Most chunks have none, and counting bits is cheaper than unpacking them.
    found = [np.flatnonzero(np.asarray(mask)) for mask in masks if mask.true_count]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


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
    """The slots with the rows of some files dead, and which files were found."""
    changed: list[_Slot] = []
    matched: set[FileKey] = set()
    for slot in slots:
        chunk = slot.chunk
        if not (in_checkpoint or isinstance(chunk, MemoryChunk)):
            changed.append(slot)
            continue
        rows, found = matching_rows(chunk.column("path"), partial(_deletion_vectors, chunk), keys, spellings)
        matched |= found
        if len(rows):
            dead = np.zeros(chunk.num_rows, dtype=np.bool_) if slot.dead is None else slot.dead.copy()
            dead[rows] = True
            slot = replace(slot, dead=dead)
        changed.append(slot)
    return changed, matched
