"""A run of live files as columns, in memory or still in a checkpoint."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.arrow_schema import DELETION_VECTOR_TYPE, LIVE_FILE_SCHEMA, STRING_MAP
from delta_core.log.checkpoint_reader import CheckpointPart, damaged_checkpoint
from delta_core.replay.parsed_statistics import statistics_to_json

# Statistics of a column take three arrays of eight bytes a row.
_MEMO_VALUES = 32

# Read together when a chunk is opened: identity, partition and size answer most questions.
EAGER_COLUMNS = ("path", "partition_values", "size_bytes")

_LEAVES = {
    "path": "path",
    "partition_values": "partitionValues",
    "size_bytes": "size",
    "modification_time_ms": "modificationTime",
    "stats": "stats",
    "tags": "tags",
    "deletion_vector": "deletionVector",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "clustering_provider": "clusteringProvider",
}
_DELETION_VECTOR_LEAVES = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")


class FileChunk(Protocol):
    """Columns of LIVE_FILE_SCHEMA, each available by itself.

    Attributes:
        memo: what others have worked out from the chunk, which never changes, and want to find again.
    """

    memo: Memo

    @property
    def num_rows(self) -> int:
        """Rows, dead ones included."""
        ...

    def column(self, name: str) -> pa.Array:
        """One column. A map column may have dictionary-encoded keys and items."""
        ...

    def maybe_has_deletion_vectors(self) -> bool:
        """False when no row can have one."""
        ...


class Memo:
    """Values by key; the oldest go when there are too many. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value."""
        with self._lock:
            self._values[key] = value
            while len(self._values) > _MEMO_VALUES:
                del self._values[next(iter(self._values))]


class MemoryChunk:
    """Files that commits added."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.memo = Memo()

    @property
    def num_rows(self) -> int:
        """Rows, dead ones included."""
        return int(self.batch.num_rows)

    def column(self, name: str) -> pa.Array:
        """One column."""
        return self.batch.column(name)

    def maybe_has_deletion_vectors(self) -> bool:
        """False when no row has one."""
        vectors = self.batch.column("deletion_vector")
        return bool(vectors.null_count < len(vectors))


_Rows = range | npt.NDArray[np.int64] | None
"""Rows of a row group: a run of them, some of them by number, or all (None)."""


def _chosen(rows: npt.NDArray[np.int64]) -> _Rows:
    # Writers put the other actions before or after the files, so the files are nearly always one run.
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return range(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _cut(values: pa.Array, rows: _Rows) -> pa.Array:
    if rows is None:
        return values
    if isinstance(rows, range):
        return values.slice(rows.start, len(rows))
    return values.take(pa.array(rows))


def checkpoint_chunks(part: CheckpointPart, row_group: int) -> list[FileChunk]:
    """The files of one row group. Decodes EAGER_COLUMNS.

    Raises:
        CorruptLogError: they cannot be decoded, or a size is missing or negative.
    """
    shared = _RowGroup(part, row_group)
    return [chunk for index in range(shared.num_runs) if (chunk := CheckpointChunk(shared, index)).num_rows]


class _RowGroup:
    """A row group's rows in runs; a column is decoded for all of them when it is first asked for."""

    def __init__(self, part: CheckpointPart, row_group: int) -> None:
        self.part = part
        self.row_group = row_group
        self._lock = threading.Lock()
        self._columns: dict[str, list[pa.Array | None]] = {}
        eager = [name for name in EAGER_COLUMNS if self.has(name)]
        runs = part.read(row_group, "add", [_LEAVES[name] for name in eager])
        self.num_runs = len(runs)
        self.lengths = [len(rows) for rows in runs]
        for name in eager:
            self._columns[name] = [self._field(rows, name) for rows in runs]

    def has(self, name: str) -> bool:
        """Whether the file has the column."""
        return self.part.has(f"add.{_leaf(name)}")

    def column(self, name: str, index: int) -> pa.Array:
        """One column of one run, as the file has it; rows of other actions are null."""
        with self._lock:
            # Released already: a chunk that failed on the way asks again, and must fail the same way.
            if name not in self._columns or self._columns[name][index] is None:
                runs = self.part.read(self.row_group, "add", [_leaf(name)])
                self._columns[name] = [self._field(rows, name) for rows in runs]
            return self._columns[name][index]

    def release(self, name: str, index: int) -> None:
        """Forget a run of a column: its chunk has it converted now."""
        with self._lock:
            self._columns[name][index] = None

    def _field(self, rows: pa.StructArray, name: str) -> pa.Array:
        try:
            return pc.struct_field(rows, _leaf(name))
        except (pa.ArrowException, KeyError) as error:
            raise damaged_checkpoint(self.part.path, f"add.{_leaf(name)}: {error}") from error


def _leaf(name: str) -> str:
    """What a column of LIVE_FILE_SCHEMA, or one that only checkpoints have, is called in a checkpoint."""
    return _LEAVES.get(name, name)


class CheckpointChunk:
    """The files of a run of a row group; columns are decoded when first asked for, and kept."""

    def __init__(self, shared: _RowGroup, index: int) -> None:
        self._shared = shared
        self._index = index
        self._lock = threading.Lock()
        self._columns: dict[str, pa.Array] = {}
        self.memo = Memo()
        self._rows: _Rows = None
        total = shared.lengths[index]
        paths = shared.column("path", index)
        if paths.null_count:
            self._rows = _chosen(np.flatnonzero(paths.is_valid().to_numpy(zero_copy_only=False)))
        self._num_rows = total if self._rows is None else len(self._rows)
        if self._num_rows:
            for name in EAGER_COLUMNS:
                self._columns[name] = self._decode(name)
            self._check()

    @property
    def num_rows(self) -> int:
        """Rows, dead ones included."""
        return self._num_rows

    def column(self, name: str) -> pa.Array:
        """One column. Raises CorruptLogError when it cannot be decoded."""
        with self._lock:
            found = self._columns.get(name)
            if found is None:
                found = self._columns[name] = self._decode(name)
            return found

    def maybe_has_deletion_vectors(self) -> bool:
        """False when the footer proves that no row has one."""
        shared = self._shared
        return shared.part.present_rows(shared.row_group, "add.deletionVector.storageType") != 0

    def _decode(self, name: str) -> pa.Array:
        found = self._convert(name)
        if name == "stats" and found.null_count == len(found) and self._shared.has("stats_parsed"):
            return self._statistics_from_columns()
        return found

    def _statistics_from_columns(self) -> pa.Array:
        """The JSON form of statistics that the checkpoint has as columns only."""
        try:
            values = self._shared.column("stats_parsed", self._index)
            found = statistics_to_json(_cut(values, self._rows))
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise damaged_checkpoint(self._shared.part.path, f"add.stats_parsed: {error}") from error
        self._shared.release("stats_parsed", self._index)
        return found

    def _convert(self, name: str) -> pa.Array:
        wanted = LIVE_FILE_SCHEMA.field(name).type
        if not self._shared.has(name):
            return pa.nulls(self._num_rows, wanted)
        try:
            values = _cut(self._shared.column(name, self._index), self._rows)
            # Damaged pages decode to invalid text and to codes beyond their dictionary.
            values.validate(full=True)
            if wanted == DELETION_VECTOR_TYPE:
                values = deletion_vectors(values)
            elif pa.types.is_map(wanted):
                values = values if name == "partition_values" else plain_map(values)
            elif values.type != wanted:
                values = values.cast(wanted)
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise damaged_checkpoint(self._shared.part.path, f"add.{_LEAVES[name]}: {error}") from error
        self._shared.release(name, self._index)
        return values

    def _check(self) -> None:
        sizes = self._columns["size_bytes"]
        if sizes.null_count:
            raise damaged_checkpoint(self._shared.part.path, "a file has no size")
        if len(sizes) and pc.min(sizes).as_py() < 0:
            raise damaged_checkpoint(self._shared.part.path, "a file has a negative size")


def plain_map(values: pa.MapArray) -> pa.MapArray:
    """A map whose keys and items may be dictionary-encoded, as map<string, string>."""
    if values.type == STRING_MAP:
        return values
    if len(values) == 0:
        return pa.array([], STRING_MAP)
    offsets = values.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    # `keys` and `items` belong to the whole buffer, whatever slice the map is.
    keys = _plain_strings(values.keys, first, last)
    items = _plain_strings(values.items, first, last)
    # A null bitmap cannot go with offsets that are themselves a slice.
    moved = offsets if first == 0 and offsets.offset == 0 else pc.subtract(offsets, offsets[0])
    if values.null_count == 0:
        return pa.MapArray.from_arrays(moved, keys, items, STRING_MAP)
    return pa.MapArray.from_arrays(moved, keys, items, STRING_MAP, mask=pc.is_null(values))


def _plain_strings(values: pa.Array, first: int, last: int) -> pa.Array:
    cut = values if len(values) == last - first else values.slice(first, last - first)
    return cut if cut.type == pa.string() else cut.cast(pa.string())


def map_values(values: pa.MapArray, key: str) -> pa.Array:
    """The items of one key of a map column, as a dictionary-encoded or plain string array.

    Keys are column names, so case does not count where no key has the exact spelling. Dictionary-encoded
    maps whose rows all have the same keys in the same order, which is what writers produce, cost one
    strided view.
    """
    rows = len(values)
    if rows == 0:
        return pa.array([], pa.string())
    if pa.types.is_dictionary(values.type.item_type) and values.null_count == 0:
        found = _strided(values, key)
        if found is not None:
            return found
    plain = plain_map(values)
    spellings = [name for name in pc.unique(plain.keys).to_pylist() if name.casefold() == key.casefold()]
    found = [
        pc.map_lookup(plain, pa.scalar(name, pa.string()), "last")
        for name in sorted(spellings, key=lambda name: name != key) or [key]
    ]
    return found[0] if len(found) == 1 else pc.coalesce(*found)


def _strided(values: pa.MapArray, key: str) -> pa.Array | None:
    rows = len(values)
    offsets = values.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    width, rest = divmod(last - first, rows)
    if rest or width == 0 or not (np.diff(offsets) == width).all():
        return None
    keys, items = (side.slice(first, last - first) for side in (values.keys, values.items))
    if not pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False).reshape(rows, width)
    if not (codes[:1] == codes).all():
        return None
    names = [keys.dictionary[int(code)].as_py() for code in codes[0]]
    if names.count(key) != 1:
        others = any(name.casefold() == key.casefold() for name in names)
        return None if others else pa.nulls(rows, pa.string())
    picked = np.arange(names.index(key), rows * width, width)
    return items.take(pa.array(picked))


def deletion_vectors(values: pa.StructArray) -> pa.StructArray:
    """A log's deletion vector descriptors as DELETION_VECTOR_TYPE."""
    fields = [DELETION_VECTOR_TYPE.field(index) for index in range(DELETION_VECTOR_TYPE.num_fields)]
    present = {values.type.field(index).name for index in range(values.type.num_fields)}
    children = [
        pc.struct_field(values, leaf).cast(item.type) if leaf in present else pa.nulls(len(values), item.type)
        for leaf, item in zip(_DELETION_VECTOR_LEAVES, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=fields, mask=pc.is_null(children[0]))
